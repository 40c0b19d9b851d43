# frozen_string_literal: true

require "fileutils"
require "open3"
require "timeout"
require "tmpdir"
require "sdb"
require "sdb/open"

# The field cases run programs of their own, with sdb and without. SDB_LONG=1 lets them run as long as the case asks.
module CaseHelper
  LONG = ENV["SDB_LONG"] == "1"
  LIB = File.expand_path("../../lib", __dir__)
  HANG_S = LONG ? 1800 : 120

  # What a program did. status: Process::Status.
  Result = Struct.new(:out, :err, :status, :pid) do
    # Exit status, or the signal that ended it: what a shell or a supervisor sees.
    def ending = status.signaled? ? [:signal, status.termsig] : [:exit, status.exitstatus]
    def figures = out.lines(chomp: true).filter_map { |l| l.match(/\A(\w+)=(\S+)\z/)&.captures }.to_h
  end

  def setup
    super
    @dir = Dir.mktmpdir("sdb-case")
  end

  def teardown
    FileUtils.rm_rf(@dir)
    super
  end

  # short, or long with SDB_LONG=1.
  def long(short, long) = LONG ? long : short

  # Runs Ruby code. with_sdb: under -rsdb/auto, recording into @dir. before: a command that runs it.
  def program(code, with_sdb: true, interval: "1ms", ring: "8M", dir: @dir, env: {}, options: [], before: [], **spawn_options)
    settings = { "SDB" => "0" }
    settings = { "SDB" => nil, "SDB_DIR" => dir, "SDB_INTERVAL" => interval, "SDB_RING" => ring, "SDB_MAX_CPU" => "0" } if with_sdb
    file = File.join(@dir, "program-#{@programs = (@programs || 0) + 1}.rb")
    File.write(file, code)
    command = [*before, RbConfig.ruby, "-I#{LIB}", *("-rsdb/auto" if with_sdb), *options, file]
    finish(*Open3.popen3(settings.merge(env), *command, **spawn_options))
  end

  # As program, but must end well; what it said on standard error is in the message.
  def program!(code, **options)
    result = program(code, **options)
    assert_equal [:exit, 0], result.ending, "#{result.err}\n#{result.out}"
    result
  end

  # The log of a program's own process.
  def log_of(result, dir: @dir)
    paths = Dir[File.join(dir, "#{result.pid}-*.sdb")]
    assert_equal 1, paths.size, "#{paths.inspect} #{result.err}"
    Sdb.open(paths.first)
  end

  # [[thread's name, [frame, ...], ns], ...] from the bottom of the stack up.
  def stacks(profile)
    profile.each_stack.map { |_, thread, frames, ns| [thread, frames, ns] }
  end

  def names(profile) = profile.functions.functions.map(&:name)

  # Memory of the sizes that recycle must come back: RSS after the first quarter and at the end.
  def assert_flat(figures, slack_kib)
    return if ENV["ASAN_OPTIONS"] # the sanitizer keeps what was freed for a while, to find who uses it

    warm, last = figures.fetch_values("warm_kib", "last_kib").map(&:to_i)
    assert_operator last - warm, :<, slack_kib, "RSS grew from #{warm} to #{last} KiB"
  end

  # For the programs: rss, burn (CPU time of this thread), and the time that is left.
  TOOLS = <<~RUBY
    def rss_kib = File.read("/proc/self/status")[/VmRSS:\\s+(\\d+)/, 1].to_i
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def burn(seconds)
      finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
      nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
    end
    # Yields for so many seconds; prints what memory was like when warm and at the end.
    def for_seconds(seconds)
      finish = now + seconds
      warm_at = now + seconds / 4.0
      warm = nil
      while now < finish
        yield
        warm ||= rss_kib if now > warm_at
      end
      puts "warm_kib=\#{warm || rss_kib}", "last_kib=\#{rss_kib}"
    end
  RUBY

  private

  def finish(input, out, err, waiter)
    input.close
    readers = [out, err].map { |io| Thread.new { io.read } }
    unless waiter.join(HANG_S)
      Process.kill(:KILL, waiter.pid)
      flunk "the program hung: #{readers.map(&:value).join("\n")}"
    end
    Result.new(*readers.map(&:value), waiter.value, waiter.pid)
  end
end
