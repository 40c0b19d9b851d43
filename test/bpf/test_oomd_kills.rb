# frozen_string_literal: true

require "test_helper"
require "bpf/support"

# Real kills inside a small memory cgroup: which are captured, and what is said of them.
class TestOomdKills < Minitest::Test
  include BlackBox::Setup

  TIMES = Integer(ENV.fetch("SDB_OOM_TIMES", "20"))

  def test_a_process_that_runs_out_of_memory_itself_is_captured_as_an_oom_kill
    group = cgroup
    process = victim("hog", cgroup: group)
    process.go
    assert process.wait.signaled?
    dump = daemon.dump_of(process.pid)

    assert_equal ["oom", "kernel_oom", 1, 1], [dump.cause, dump["kill_source"], dump.flags[:oom_confirmed], dump.flags[:complete]]
    assert_equal 64 << 20, dump.number(:cgroup_limit_bytes)
    assert_operator dump.number(:anon_rss_bytes), :>, 50 << 20
    assert_equal group.path, dump["cgroup"]
    assert_right_frames(dump)
  end

  def test_every_sleeping_victim_that_did_not_trigger_the_kill_is_captured
    assert_equal TIMES, TIMES.times.count { captured_by_another?("sleep") }
  end

  def test_every_spinning_victim_that_did_not_trigger_the_kill_is_captured
    assert_equal TIMES, TIMES.times.count { captured_by_another?("spin") }
  end

  def test_three_victims_in_a_burst_are_captured
    victims = Array.new(3) { |i| victim("sleep", threads: 4 + i, frames: 60, hold: 12, adj: 1000, cgroup: (@group ||= cgroup)) }
    trigger = child(BlackBox::VICTIM, "trigger", 1, 1, "-", "-", cgroup: @group, adj: 0)
    trigger.go
    victims.each(&:wait)
    victims.each_with_index do |process, i|
      dump = daemon.dump_of(process.pid)
      assert_equal "oom", dump.cause
      assert_right_frames(dump, threads: 4 + i, frames: 60)
      assert_equal trigger.pid, dump.number(:sender_pid)
    end
  end

  def test_kill_9_is_captured_but_not_called_oom
    process = victim("sleep")
    process.kill
    process.wait
    dump = daemon.dump_of(process.pid)

    assert_equal ["sigkill", "user", 0], [dump.cause, dump["kill_source"], dump.flags[:oom_confirmed]]
    assert_equal Process.pid, dump.number(:sender_pid)
    assert_right_frames(dump)
  end

  def test_other_ends_of_a_process_leave_no_dump
    terminated = victim("sleep")
    aborted = victim("sleep")
    [[terminated, :TERM], [aborted, :ABRT]].each do |process, signal|
      process.kill(signal)
      process.wait
    end
    killed = victim("sleep")
    killed.kill
    killed.wait
    daemon.dump_of(killed.pid)
    assert_equal 1, daemon.dumps.size
  end

  def test_stacks_too_deep_to_copy_are_truncated_and_still_end
    process = victim("sleep", threads: 3, frames: 1000)
    process.kill
    process.wait
    dump = daemon.dump_of(process.pid)

    assert_equal 3, dump.threads.size
    dump.threads.each do |thread|
      assert_equal [:truncated], thread.flags
      assert_equal 1000, thread.frame_total
      assert_equal (16 << 10) / 56, thread.frames.size
      assert_equal 0x10000 * (thread.slot + 1), thread.frames.first.iseq
    end
    assert_equal 3 * (1000 * 56 - (16 << 10)), dump.flags[:truncated_bytes]
  end

  def test_more_threads_than_a_capture_holds_are_counted_and_it_still_ends
    process = victim("sleep", threads: 300, frames: 290)
    process.kill
    process.wait
    dump = daemon.dump_of(process.pid)

    assert_operator dump.number(:capture_bytes), :<=, (1 << 20) + (64 << 10)
    assert_equal 300, dump.number(:capture_threads)
    assert_operator dump.flags[:truncated_threads], :>, 200
    assert_equal 0, dump.flags[:complete]
  end

  def test_what_the_recorder_had_not_written_yet_is_in_the_copy_of_the_ring
    process = victim("sleep")
    process.kill
    process.wait
    dump = daemon.dump_of(process.pid)
    ring = File.binread(dump.path)[dump.ring_range]

    assert_includes ring, "flushed"
    assert_includes ring, "pending"
    assert_operator dump.flags[:merged_bytes], :>, 0
    assert_equal 7000, dump.counters.first
  end

  private

  # The victim holds more and volunteers (oom_score_adj 1000): the kernel takes it when the other wants memory.
  def captured_by_another?(mode)
    group = cgroup
    process = victim(mode, hold: 30, adj: 1000, cgroup: group)
    trigger = child(BlackBox::VICTIM, "trigger", 1, 1, "-", "-", cgroup: group, adj: 0)
    trigger.go
    process.wait
    dump = daemon.dump_of(process.pid)
    assert_right_frames(dump)
    assert_equal ["oom", trigger.pid, 1], [dump.cause, dump.number(:sender_pid), dump.flags[:complete]]
    trigger.finish
    @cgroups.delete(group).remove
    true
  end
end
