# frozen_string_literal: true

require "test_helper"
require "sdb/cli/command"
require "sdb/open"
require "support/cli_fuzz"
require "support/cli_helper"

# Logs that somebody made so that reading them takes long, or breaks.
class TestHostileLogs < Minitest::Test
  include CLIHelper

  CPU_SECONDS = 6 # of a machine that may be busy with other tests; `rake bench:hostile` prints what it takes
  KIBS = 200 << 10
  # Those that each log is made for; `rake bench:hostile` asks all.
  COMMANDS = {
    deep_samples: ["request r", "request r --json", "export collapsed"], deep_threads: ["stacks", "oom show --json"],
    deep_comb: ["tree --min 0", "export collapsed"], many_waits: ["slow"], many_holders: ["request r --json"], far_lines: ["lines c.rb"],
    nested_spans: ["oom show --json"], many_requests: ["slow --json"], many_events: ["functions"], empty_chunks: ["functions"]
  }.freeze

  def setup
    super
    @dir = Dir.mktmpdir("sdb-hostile")
  end

  def teardown
    FileUtils.rm_rf(@dir)
    super
  end

  HostileRings.all.each do |name, make|
    define_method(:"test_#{name}_is_answered_in_time_and_memory") do
      path = make.call(File.join(@dir, "#{name}.sdb"))
      COMMANDS.fetch(name).each do |words|
        cpu, kib, status, err = HostileRings.measure(words.split, path)
        assert_equal 0, status, "#{words}: #{err}"
        assert_operator cpu, :<, CPU_SECONDS, "seconds of CPU for sdb #{words}"
        assert_operator kib, :<, KIBS, "KiB for sdb #{words}"
      end
    end
  end

  def test_what_was_left_out_of_long_stacks_is_said
    path = HostileRings.deep_threads(File.join(@dir, "deep.sdb"))
    assert_match(/^    \(\d+ frames left out\)$/, sdb!("stacks", path).out)
  end

  def test_some_hundred_mutants_of_logs_break_no_command
    runs = 0
    with_env("SDB_DEBUG" => "1") { CLIFuzz.new(@dir).run(300) { runs += 1 } }
    assert_equal 300, runs
  end

  # One chunk's worth of C between two looks at whether anybody wants it still.
  def test_reading_ends_when_it_is_interrupted
    path = HostileRings.deep_samples(File.join(@dir, "deep.sdb"))
    waits = Thread::Queue.new
    reader = Thread.new do
      waits << true
      Sdb::Profile.new([path] * 2000).functions
    end
    reader.report_on_exception = false
    waits.pop
    sleep 0.3
    from = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    reader.raise(Interrupt)
    assert_raises(Interrupt) { reader.join(60) && reader.value }
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - from, :<, 2 # half a second on a machine that has it
  end

  def test_a_fault_of_our_own_is_one_line
    broken = Class.new(Sdb::CLI::Command) do
      define_method(:run) { |_| raise TypeError, "nil where a log should be\nand more" }
      define_singleton_method(:name) { "Sdb::CLI::Broken" }
    end
    err = StringIO.new
    assert_equal 1, broken.call([], out: StringIO.new, err: err)
    assert_equal "sdb broken: TypeError: nil where a log should be (a fault of sdb; SDB_DEBUG=1 shows where)\n", err.string
  end
end
