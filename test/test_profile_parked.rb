# frozen_string_literal: true

require "test_helper"
require "support/cli_helper"
require "support/dump_encoder"
require "support/profile_helper"

# A process all of whose threads wait writes nothing: its log ends where it parked, and its threads are where they were.
class TestProfileParked < Minitest::Test
  include ProfileHelper
  include CLIHelper

  S = 1_000_000_000

  def born_ago(nanoseconds)
    { boot_id: Sdb::Ring.this_boot_id, start_monotonic_ns: Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - nanoseconds,
      start_realtime_ns: Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond) - nanoseconds }
  end

  # Path of a log that ends with PARK, 12 ms after its start.
  def ring_that_ends_parked(name = "parked.sdb", **options)
    file = RingEncoder.build(**options) do
      instance_eval(&ProfileHelper::CODES)
      thread :m, tid: 1, main: true
      thread :w, tid: 2, name: "worker"
      at 0, m: running("main:2 work:12"), w: blocked("other:22 sleep")
      at 10, m: blocked("main:3 sleep", age: 0.4)
      record(12) { |r| r.park }
      finish 12
      status parked: 1
    end
    file.write(File.join(@dir, name))
  end

  def holding_the_lock_of(path)
    File.open(path) do |file|
      assert file.flock(File::LOCK_EX | File::LOCK_NB)
      yield
    end
  end

  def test_threads_of_a_live_process_that_parked_are_where_they_were_up_to_now
    path = ring_that_ends_parked(**born_ago(20 * S))
    holding_the_lock_of(path) do
      stacks = Sdb::Profile.new([path]).stacks.threads
      assert_equal [%w[main blocked], %w[worker blocked]], stacks.map { |t| [t.name, t.state] }
      assert_equal ["Kernel#sleep"] * 2, stacks.map { |t| t.frames.last.name }
      assert_equal [9_600_000, 0], stacks.map(&:since_ns)
    end
  end

  def test_windows_from_now_back_hold_parked_time
    path = ring_that_ends_parked(**born_ago(20 * S))
    holding_the_lock_of(path) do
      threads = Sdb::Profile.new([path], window: -3 * S..).threads(last: 3 * S).threads
      assert_equal [[0, 3 * S, 0]] * 2, threads.map { |t| [t.running_ns, t.blocked_ns, t.unknown_ns] }
      assert_equal 3 * S, sdb!("top", path, "--json", "--every", "3s").json["threads"].first["blocked_ns"]
      assert_equal 2, sdb!("stacks", path, "--json").json["threads"].size
      assert_match(/^at .* +2 threads$/, sdb!("stacks", path).out)
      assert_match(/blocked  for 2\d\.\d s$/, sdb!("stacks", path).out)
    end
  end

  def test_a_process_that_ended_is_not_carried_on_to_now
    path = ring_that_ends_parked(**born_ago(20 * S))
    assert_equal 12_000_000, Sdb::Profile.new([path]).duration_ns
    assert_equal 2, Sdb::Profile.new([path]).stacks.threads.size
  end

  def test_a_dump_says_until_when_a_parked_process_lived
    ring = ring_that_ends_parked(start_monotonic_ns: 1000 * S)
    dump = DumpEncoder.write(File.join(@dir, "x.sdbdump"), ring: ring, facts: { "cause" => "oom", "killed_monotonic_ns" => 1007 * S })
    p = Sdb::Profile.new([dump])
    assert_equal 7 * S, p.duration_ns
    assert_equal([3 * S] * 2, p.threads(last: 3 * S).threads.map(&:blocked_ns))
    assert_equal 2, p.stacks.threads.size
    liar = DumpEncoder.write(File.join(@dir, "y.sdbdump"), ring: ring, facts: { "killed_monotonic_ns" => "9" * 40 })
    assert_equal 12_000_000, Sdb::Profile.new([liar]).duration_ns
  end
end
