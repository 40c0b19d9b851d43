# frozen_string_literal: true

require "test_helper"
require "json"
require "support/case_helper"

# C48: a process in which everything waits, and one that was stopped for a while: the log ends, or has a hole, and the
# answers are true all the same.
class TestC48Parked < Minitest::Test
  include CaseHelper

  WAITS = <<~RUBY
    def hangs_on_a_queue = Thread::Queue.new.pop
    def hangs_in_sleep = sleep
    threads = [Thread.new { hangs_on_a_queue }, Thread.new { hangs_in_sleep }]
    def main_waits(threads) = threads.each(&:join)
    $stdout.puts "up"
    $stdout.flush
    main_waits(threads)
  RUBY

  WORKS = <<~RUBY
    def works
      x = 0
      finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 1.0
      x += 1 while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
    end
    $stdout.puts "up"
    $stdout.flush
    works
  RUBY

  def test_every_thread_of_a_process_that_hangs_is_shown_with_its_stack_and_since_when
    run_until_up(WAITS) do |pid|
      sleep long(2.5, 10) # the case: nothing happens for so long
      threads = sdb(pid, "stacks").fetch("threads")
      assert_equal 3, threads.size
      frames = threads.map { |thread| thread["frames"].map { |frame| frame["name"] }.join(" ") }
      %w[hangs_on_a_queue hangs_in_sleep main_waits].each { |name| assert_equal 1, frames.grep(/#{name}/).size, frames.inspect }
      assert_equal ["blocked"], threads.map { |thread| thread["state"] }.uniq
      ring = Sdb::Ring.read(Dir["#{@dir}/*.sdb"].first)
      now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - ring.start_monotonic_ns
      threads.each { |thread| assert_operator now - thread["since_ns"], :>, 2_000_000_000 }

      last = sdb(pid, "threads", "--last", "2s").fetch("threads")
      assert_equal [3, [2_000_000_000]], [last.size, last.map { |thread| thread["blocked_ns"] }.uniq]
      top = sdb(pid, "top", "--every", "2s").fetch("threads")
      assert_equal [3, [2_000_000_000]], [top.size, top.map { |thread| thread["blocked_ns"] }.uniq]
    end
  end

  def test_a_process_that_was_stopped_by_a_signal_did_not_work_meanwhile
    run_until_up(WORKS) do |pid, waiter|
      sleep 0.2
      Process.kill(:STOP, pid)
      sleep 2
      Process.kill(:CONT, pid)
      waiter.value
      main = sdb(pid, "threads").fetch("threads").find { |thread| thread["name"] == "main" }
      assert_operator main["running_ns"], :<=, life_ns(main) - 1_900_000_000
      # 3.1 takes one that has to wait for a CPU for blocked, before and after, and so in between
      nobodys = main["unknown_ns"] + (main["states"] == "inferred" ? main["blocked_ns"] : 0)
      assert_operator nobodys, :>=, 1_900_000_000
      works = sdb(pid, "functions", "--state", "running").fetch("functions").find { |function| function["name"].end_with?("works") }
      assert_operator works["total_ns"], :<=, life_ns(main) - 1_900_000_000
      assert_operator sdb(pid, "functions").fetch("lost").fetch("gap_ns"), :>=, 1_900_000_000
    end
  end

  private

  def life_ns(thread) = thread["end_ns"] - thread["start_ns"]

  def run_until_up(code)
    file = File.join(@dir, "hangs.rb")
    File.write(file, code)
    env = { "SDB_DIR" => @dir, "SDB" => nil, "SDB_RING" => "8M", "SDB_INTERVAL" => "1ms", "SDB_MAX_CPU" => "0" }
    Open3.popen2(env, RbConfig.ruby, "-I#{LIB}", "-rsdb/auto", file) do |_, out, waiter|
      assert_equal "up\n", out.gets
      yield waiter.pid, waiter
    ensure
      Process.kill(:KILL, waiter.pid) if waiter.alive?
    end
  end

  def sdb(pid, command, *options)
    out, err, status = Open3.capture3({ "SDB_DIR" => @dir, "SDB" => "0", "RUBYOPT" => nil }, RbConfig.ruby, "-I#{LIB}", File.expand_path("../exe/sdb", LIB),
                                      command, pid.to_s, *options, "--json")
    assert status.success?, err
    JSON.parse(out)
  end
end
