# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# A Ruby thread of sdb's must not keep a deadlocked program from ending, nor one that joins every thread it finds.
# Whatever a program does at once it may do as well after sdb's thread has come, gone or waited for a while.
class TestC38DeadlocksAndJoins < Minitest::Test
  include CaseHelper

  DELAYS = [0, 0.06, 0.25, 1, 2].freeze

  # Each ends by itself without sdb.
  DEADLOCKS = {
    "a_queue" => "Thread::Queue.new.pop",
    "a_sized_queue" => "q = Thread::SizedQueue.new(1); q << 1; q << 2",
    "a_thread_that_waits_for_a_queue" => "Thread.new { Thread.current.report_on_exception = false; Thread::Queue.new.pop }.join",
    "the_value_of_such_a_thread" => "Thread.new { Thread::Queue.new.pop }.value",
    "a_condition_variable" => "m = Mutex.new; m.synchronize { ConditionVariable.new.wait(m) }",
    "a_mutex_that_sleeps" => "m = Mutex.new; m.lock; m.sleep",
    "two_mutexes" => <<~RUBY,
      a, b = Mutex.new, Mutex.new
      ready = Thread::Queue.new
      t = Thread.new { b.synchronize { ready << 1; sleep 0.05; a.synchronize { 1 } } }
      a.synchronize { ready.pop; b.synchronize { 2 } }
    RUBY
    "many_threads" => "q = Thread::Queue.new; 5.times.map { Thread.new { q.pop } }.each(&:join)"
  }.freeze

  DEADLOCKS.each do |name, code|
    define_method("test_a_deadlock_of_#{name}_is_raised_as_fatal_whenever_it_comes") do
      outs = at_each_delay("begin\n#{code}\nrescue Exception => e\n  puts e.class, e.message.lines.first\nend")
      assert_equal [["fatal", "No live threads left. Deadlock?"]], outs.uniq
    end
  end

  # The first question to the VM is not the last one.
  def test_a_deadlock_is_seen_after_other_times_of_rest
    outs = at_each_delay(<<~RUBY)
      3.times { sleep 0.15; Thread.new { sleep 0.15 }.join }
      begin
        Thread.new { Thread.current.report_on_exception = false; Thread::Queue.new.pop }.join
      rescue Exception => e
        puts e.class
      end
    RUBY
    assert_equal [["fatal"]], outs.uniq
  end

  # As without sdb: the VM looks when a thread goes to sleep, not when one ends, and `sleep` without a time is no deadlock.
  def test_what_the_vm_takes_for_no_deadlock_is_none
    outs = at_each_delay(<<~RUBY)
      q = Thread::Queue.new
      Thread.new { sleep 0.1 }
      trap(:USR1) { q << :woken }
      other = spawn("sleep 1; kill -USR1 \#{Process.pid}")
      puts q.pop
      Process.wait(other)
      t = Thread.new { sleep }
      other = spawn("sleep 1; kill -USR1 \#{Process.pid}")
      puts q.pop
      Process.wait(other)
    RUBY
    assert_equal [%w[woken woken]], outs.uniq
  end

  def test_a_program_that_joins_every_thread_ends
    outs = at_each_delay("(Thread.list - [Thread.current]).each(&:join); puts :joined")
    assert_equal [["joined"]], outs.uniq
  end

  def test_a_program_that_joins_every_thread_again_and_again_ends
    outs = at_each_delay(<<~RUBY)
      4.times do |i|
        Thread.new { sleep 0.1 * i }
        Thread.new { (Thread.list - [Thread.main, Thread.current]).each(&:join) }
        sleep 0.2 * i
        (Thread.list - [Thread.current]).each(&:join)
      end
      puts :joined
    RUBY
    assert_equal [["joined"]], outs.uniq
  end

  # Whoever rescues `fatal` goes on, and what it then runs has names.
  def test_a_program_that_rescues_a_deadlock_goes_on_and_is_named
    result = program!(<<~RUBY)
      sleep 0.3
      begin
        Thread::Queue.new.pop
      rescue Exception => e
        puts e.class
      end
      def after_the_deadlock
        finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.5
        [1].to_s while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
      end
      after_the_deadlock
      Process.kill(:KILL, fork { sleep 0.3; after_the_deadlock; sleep })
      (Thread.list - [Thread.current]).each(&:join)
      Process.waitall
      puts :joined
    RUBY
    assert_equal %w[fatal joined], result.out.split
    assert_includes names(log_of(result)), "Object#after_the_deadlock"
  end

  private

  # What the program prints when it begins at once and after a while of work and of rest.
  def at_each_delay(code)
    waits = DELAYS.flat_map { |delay| ["sleep #{delay}", "t = Time.now + #{delay}; [1].to_s while Time.now < t"] }
    waits = waits.each_slice(2).with_index.map { |pair, i| pair[i % 2] }.push(waits.last)
    threads = waits.map do |wait|
      Thread.new do
        Thread.current.report_on_exception = false
        result = program("$stdout.sync = true\n#{wait}\n#{code}")
        assert_equal [:exit, 0], result.ending, "after #{wait}: #{result.err}"
        result.out.split("\n")
      end
    end
    threads.map(&:value)
  end
end
