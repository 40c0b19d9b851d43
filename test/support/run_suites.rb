# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# run_suites.rb - runs the suites, two beside each other, each into a log of its own, and sums them up:
#
#   ruby test/support/run_suites.rb [all | SUITE...]
#
# Without arguments: the suites that test the whole product on this machine's own Ruby. "all": those and everything else
# (other Rubies, Redmine, sanitized extensions, the measurements).
#
# A suite is a rake task. It passes when it exits 0, has no failed test and ran at least one (or says what it
# skipped and why, in lines "SKIP what: why"). Counts come from its lines "N passed, N failed, N skipped".

require "fileutils"
require_relative "suite_log"

class RunSuites
  Suite = Struct.new(:name, :task, :limit_s, :group)

  # Most of a suite's time it waits for servers and children, so two fit on two cores. SDB_TEST_LANES=1 runs one at a time.
  LANES = Integer(ENV.fetch("SDB_TEST_LANES", "2"))

  # Those that take longest first, so that no lane ends long after the other.
  # limit_s: a suite that takes longer hangs; it is ended and has failed. group: :own for what bin/test runs.
  SUITES = [
    ["ruby-3.3", "test:ruby_3.3", 1500, :more],
    ["ruby-3.4", "test:ruby_3.4", 1500, :more],
    ["ruby", "test", 900, :own],
    ["bpf", "test:bpf", 900, :own],
    ["sanitized", "test:sanitized", 900, :more],
    ["redmine", "test:redmine", 900, :more],
    ["benches", "test:benches", 900, :more],
    ["integration", "test:integration", 900, :own],
    ["browser", "test:browser", 600, :own],
    ["install", "test:install", 600, :own],
    ["lint", "lint", 300, :own],
    ["c-asan", "test:asan", 600, :own],
    ["coverage", "test:coverage", 600, :more],
    ["c", "test:c", 600, :own],
    ["c-tsan", "test:tsan", 600, :own]
  ].map { |row| Suite.new(*row) }.freeze

  Result = Struct.new(:suite, :counts, :seconds, :skips, :log, :trouble) do
    def passed = counts[:passed]
    def skipped = counts[:skipped]

    # A suite that broke, hung or ran nothing counts as a failed test, whatever it printed.
    def failed
      trouble && counts[:failed].zero? ? 1 : counts[:failed]
    end
  end

  def initialize(names, out: $stdout)
    @out = out
    @suites = choose(names)
    @saying = Mutex.new
    @dir = "tmp/test"
    FileUtils.mkdir_p(@dir)
  end

  # 0 when nothing failed.
  def call
    start = now
    results = again(in_lanes(@suites))
    table(results, now - start)
    failed = results.sum(&:failed)
    @out.puts("#{results.sum(&:passed)} passed, #{failed} failed, #{results.sum(&:skipped)} skipped")
    failed.zero? ? 0 : 1
  end

  private

  def choose(names)
    return SUITES if names == ["all"]
    return SUITES.select { |suite| suite.group == :own } if names.empty?

    known = SUITES.map(&:name)
    unknown = names - known
    abort "no suite #{unknown.join(", ")}; there are all, #{known.join(", ")}" unless unknown.empty?
    SUITES.select { |suite| names.include?(suite.name) }
  end

  def in_lanes(suites)
    waiting = Queue.new(suites.each_with_index.to_a).close
    results = Array.new(suites.size)
    lanes = Array.new(LANES.clamp(1, suites.size)) do
      Thread.new do
        while (suite, place = waiting.pop)
          results[place] = attempt(suite)
        end
      end
    end
    lanes.each(&:join)
    results
  ensure
    lanes&.each(&:kill)&.each(&:join) # each ends what it runs
  end

  # What failed is run once more, by itself: on a shared machine a server may start too late for its test. Both runs are
  # told, and the log of the first is kept.
  def again(results)
    results.map do |first|
      next first if first.failed.zero?

      FileUtils.cp(first.log, "#{first.log}.first")
      say("  #{first.suite.name}: once more; the log of the failed run is #{first.log}.first")
      attempt(first.suite)
    end
  end

  def attempt(suite)
    log = "#{@dir}/#{suite.name.tr(".", "_")}.log"
    start = now
    status = File.open(log, "w") { |file| watch(suite, file, start) }
    read = SuiteLog.new(File.read(log, encoding: "UTF-8").scrub)
    result = Result.new(suite, read.counts, now - start, read.skips, log, trouble(status, read))
    tell(result)
    result
  end

  def watch(suite, log, start)
    pid = spawn("bundle", "exec", "rake", suite.task, in: File::NULL, out: log, err: log, pgroup: true)
    next_word = 20
    loop do
      _, status = Process.wait2(pid, Process::WNOHANG)
      if status
        pid = nil
        return status
      end
      elapsed = now - start
      return nil if elapsed > suite.limit_s

      if elapsed > next_word
        next_word += 20
        say("#{suite.name}: #{elapsed.round} s: #{last_line(log)}")
      end
      sleep 0.1
    end
  ensure
    finish(pid) if pid
  end

  # The group, so that no server of a hung test outlives it.
  def finish(pid)
    Process.kill(:TERM, -pid)
    sleep 2
    Process.kill(:KILL, -pid)
  rescue Errno::ESRCH
    nil
  ensure
    begin
      Process.wait(pid)
    rescue StandardError
      Errno::ECHILD
    end
  end

  def trouble(status, read)
    return "took longer than its limit and was ended" unless status
    return "exit status #{status.exitstatus || "by signal #{status.termsig}"}" unless status.success?

    "ran no test and gave no reason" if read.counts.values.sum.zero?
  end

  def last_line(log)
    text = File.open(log.path, "rb") { |file| file.seek([-400, -file.size].max, IO::SEEK_END) && file.read }
    text.to_s.force_encoding("UTF-8").scrub.split("\n").reverse.find { |line| !line.strip.empty? }.to_s.strip[0, 100]
  end

  def tell(result)
    counts = format("%-12s %5d passed %4d failed %4d skipped %6.1f s", result.suite.name, result.passed, result.failed,
                    result.skipped, result.seconds)
    say(counts, *result.skips.map { |skip| "  #{skip}" }, *failure(result))
  end

  # Whole: the lanes print into each other's words otherwise.
  def say(*lines)
    @saying.synchronize do
      @out.puts(lines)
      @out.flush
    end
  end

  def failure(result)
    return [] if result.failed.zero?

    ["  #{result.suite.name}: #{result.trouble || "failed tests"}; the end of #{result.log}:",
     *File.readlines(result.log, encoding: "UTF-8").last(80).map { |line| "  | #{line.scrub.chomp}" }]
  end

  def table(results, seconds)
    @out.puts("", format("%-12s %7s %7s %8s %8s", "suite", "passed", "failed", "skipped", "seconds"))
    results.each do |r|
      @out.puts(format("%-12s %7d %7d %8d %8.1f  %s", r.suite.name, r.passed, r.failed, r.skipped, r.seconds,
                       r.trouble).rstrip)
    end
    @out.puts(format("%-37s %8.1f", "in all", seconds), "")
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

exit RunSuites.new(ARGV).call if $PROGRAM_NAME == __FILE__
