# frozen_string_literal: true

require "test_helper"
require "support/recording_helper"

# Threads that slept for a while and then run: no tick of that may be their old stack's. On Ruby 3.1, where nothing
# tells of it, this is what the clocks must find out.
class TestWakingThreads < Minitest::Test
  include RecordingHelper

  ROUNDS = 12

  def rest = sleep(0.06)

  def sleeper = Thread.new { sleep 0.3 }.tap { |thread| thread.name = "sleeper" }

  def rounds
    ROUNDS.times do
      rest
      burn(0.03)
    end
  end

  def test_what_a_thread_runs_after_a_sleep_is_not_the_sleeps
    profile = record { Thread.new { rounds }.join }
    times = profile.functions(metric: :cpu).functions.to_h { |f| [f.name, f.total_ns] }
    assert_operator times.fetch("RecordingHelper#burn"), :>, ROUNDS * 30_000_000 * 0.9, times.inspect
    assert_operator times.fetch("TestWakingThreads#rest", 0), :<, ROUNDS * 30_000_000 * 0.08, times.inspect
  end

  def short_wait = waited(:short) { sleep 0.004 }
  def long_wait = waited(:long) { sleep 0.05 }

  def waited(name)
    start = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    yield
    @waited[name] += Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - start
  end

  # Too short a run between two waits for much to be seen of it, and others run at the same time.
  def assert_waits_told_apart(others)
    @waited = Hash.new(0)
    profile = record do
      idle = Array.new(others) { Thread.new { sleep } }
      # C code without the GVL: on 3.1 a busy thread would make the waits longer by its time slices
      busy = Thread.new { loop { Sdb.const_get(:Native)::Testing.spin_without_gvl(0.05) } }
      Thread.new { 40.times { long_wait.then { short_wait } } }.join
      [busy, *idle].each(&:kill).each(&:join)
    end
    times = profile.functions.functions.to_h { |f| [f.name, f.total_ns] }
    short = times.fetch("TestWakingThreads#short_wait").to_f / @waited.fetch(:short)
    long = times.fetch("TestWakingThreads#long_wait").to_f / @waited.fetch(:long)
    assert_in_delta 1.0, short, 0.2, "#{times} #{@waited}"
    assert_in_delta 1.0, long, 0.05, "#{times} #{@waited}"
  end

  def test_a_short_wait_after_a_long_one_beside_a_busy_thread = assert_waits_told_apart(2)

  def test_a_short_wait_after_a_long_one_among_many_threads = assert_waits_told_apart(40)

  # Born at any moment of a tick, asleep from then on, looked at rarely, ended between two looks.
  def test_a_thread_that_only_sleeps_is_blocked_from_its_birth_to_its_end
    profile = record do
      Array.new(40) { |i| sleeper.tap { sleep(0.002 + (i * 0.0001)) } }.each(&:join)
    end
    sleepers = profile.threads.threads.select { |t| t.name == "sleeper" }
    assert_equal 40, sleepers.size
    assert_empty sleepers.select { |t| t.running_ns > 30_000_000 || t.blocked_ns < 250_000_000 }
  end
end
