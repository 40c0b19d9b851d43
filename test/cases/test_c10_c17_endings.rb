# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# C10 and C17: programs that end, or become another, in the middle of a recording.
class TestC10C17Endings < Minitest::Test
  include CaseHelper

  def test_fork_and_exec_many_times
    result = program!(<<~RUBY, interval: "100us", env: { "TIMES" => long(200, 10_000).to_s })
      bad = Integer(ENV["TIMES"]).times.count do
        pid = fork { exec "/bin/true" }
        !Process.wait2(pid).last.success?
      end
      bad += 20.times.count { !system("/bin/true") } + 20.times.count { `echo x` != "x\\n" }
      puts "bad=\#{bad}", "state=\#{Sdb.status[:state].sub("parked", "running")}"
    RUBY
    assert_equal({ "bad" => "0", "state" => "running" }, result.figures)
    assert_operator log_of(result).functions.total_ns, :>, 0
  end

  WORK = "def work = 20_000.times { |i| i.to_s }\nThread.new { loop { work } }\nwork\n"
  ENDS = {
    "exit!" => "exit!(3)", "abort" => "$stderr = File.open(File::NULL, 'w'); abort 'x'", "exit" => "exit(5)",
    "SIGTERM" => "Process.kill(:TERM, Process.pid); sleep 5", "SIGKILL" => "Process.kill(:KILL, Process.pid); sleep 5",
    "raise" => "raise 'x'", "throw" => "throw :nobody", "raise in at_exit" => "at_exit { raise 'x' }; exit(0)",
    "exit! in at_exit" => "at_exit { exit!(9) }", "SIGINT" => "Process.kill(:INT, Process.pid); sleep 5",
    "exit in a thread" => "Thread.new { exit(6) }.join", "SIGABRT" => "Process.setrlimit(:CORE, 0); Process.kill(:ABRT, Process.pid); sleep 5"
  }.freeze

  def test_an_end_in_the_middle_of_a_recording_is_the_same_and_leaves_a_log_that_opens
    expected = ENDS.transform_values { |code| program(WORK + code, with_sdb: false, err: File::NULL).ending }
    long(1, 17).times do
      ENDS.each do |name, code|
        result = program(WORK + code, interval: "100us", err: File::NULL)
        assert_equal expected.fetch(name), result.ending, name
        profile = log_of(result)
        assert_operator profile.functions.total_ns, :>=, 0, name
        assert_empty profile.warnings.grep(/damaged|corrupt/), name
      end
    end
  end

  def test_a_process_that_becomes_a_daemon_has_a_recording_of_its_own_with_names
    told = File.join(@dir, "told")
    result = program!(<<~RUBY, interval: "100us", env: { "TOLD" => told })
      Process.daemon(true)
      def work_of_the_daemon = 20_000.times { |i| i.to_s }
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.3
      work_of_the_daemon while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
      File.write("\#{ENV["TOLD"]}.new", Sdb.status[:ring])
      at_exit { File.rename("\#{ENV["TOLD"]}.new", ENV["TOLD"]) }
    RUBY
    500.times { File.exist?(told) ? break : sleep(0.02) }
    profile = Sdb.open(File.read(told))
    refute_equal result.pid, profile.rings.first.pid
    assert_includes names(profile), "Object#work_of_the_daemon"
  end
end
