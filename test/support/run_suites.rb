# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# run_suites.rb - runs the suites one after another, each into a log of its own, and sums them up:
#
#   ruby test/support/run_suites.rb [SUITE...]
#
# A suite is a rake task. It passes when it exits 0, has no failed test and ran at least one (or says what it
# skipped and why, in lines "SKIP what: why"). Counts come from its lines "N passed, N failed, N skipped".

require "fileutils"
require_relative "suite_log"

class RunSuites
  Suite = Struct.new(:name, :task, :limit_s)

  # limit_s: a suite that takes longer hangs; it is ended and has failed.
  SUITES = [
    ["lint", "lint", 300],
    ["c", "test:c", 600],
    ["c-asan", "test:asan", 600],
    ["c-tsan", "test:tsan", 600],
    ["sanitized", "test:sanitized", 900],
    ["ruby", "test", 600],
    ["integration", "test:integration", 900],
    ["benches", "test:benches", 600],
    ["install", "test:install", 600],
    ["browser", "test:browser", 600],
    ["bpf", "test:bpf", 900],
    ["redmine", "test:redmine", 900],
    ["ruby-3.3", "test:ruby_3.3", 1200],
    ["ruby-3.4", "test:ruby_3.4", 1200]
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
    known = SUITES.map(&:name)
    unknown = names - known
    abort "no suite #{unknown.join(", ")}; there are #{known.join(", ")}" unless unknown.empty?
    @suites = names.empty? ? SUITES : SUITES.select { |suite| names.include?(suite.name) }
    @dir = "tmp/test"
    FileUtils.mkdir_p(@dir)
  end

  # 0 when nothing failed.
  def call
    results = @suites.map { |suite| run(suite) }
    table(results)
    failed = results.sum(&:failed)
    @out.puts("#{results.sum(&:passed)} passed, #{failed} failed, #{results.sum(&:skipped)} skipped")
    failed.zero? ? 0 : 1
  end

  private

  # A suite that failed is run once more: on a shared machine a server may start too late for its test. Both runs are
  # told, and the log of the first is kept.
  def run(suite)
    first = attempt(suite)
    return first if first.failed.zero?

    FileUtils.cp(first.log, "#{first.log}.first")
    @out.puts("  #{suite.name}: once more; the log of the failed run is #{first.log}.first")
    attempt(suite)
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
      return status if status

      elapsed = now - start
      if elapsed > suite.limit_s
        finish(pid)
        return nil
      end
      if elapsed > next_word
        next_word += 20
        @out.puts("#{suite.name}: #{elapsed.round} s: #{last_line(log)}")
        @out.flush
      end
      sleep 0.1
    end
  rescue Interrupt
    finish(pid)
    raise
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
    @out.puts(format("%-12s %5d passed %4d failed %4d skipped %6.1f s", result.suite.name, result.passed, result.failed,
                     result.skipped, result.seconds))
    result.skips.each { |skip| @out.puts("  #{skip}") }
    show_failure(result) unless result.failed.zero?
    @out.flush
  end

  def show_failure(result)
    @out.puts("  #{result.suite.name}: #{result.trouble || "failed tests"}; the end of #{result.log}:")
    File.readlines(result.log, encoding: "UTF-8").last(80).each { |line| @out.puts("  | #{line.scrub.chomp}") }
  end

  def table(results)
    @out.puts("", format("%-12s %7s %7s %8s %8s", "suite", "passed", "failed", "skipped", "seconds"))
    results.each do |r|
      @out.puts(format("%-12s %7d %7d %8d %8.1f  %s", r.suite.name, r.passed, r.failed, r.skipped, r.seconds,
                       r.trouble).rstrip)
    end
    @out.puts
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

exit RunSuites.new(ARGV).call if $PROGRAM_NAME == __FILE__
