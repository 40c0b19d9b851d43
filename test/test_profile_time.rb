# frozen_string_literal: true

require "test_helper"
require "support/profile_helper"

# Whose the time between two samples is.
class TestProfileTime < Minitest::Test
  include ProfileHelper

  def test_running_time_between_two_stacks_is_split_in_the_middle_of_the_last_interval
    p = profile do
      thread :m, tid: 1, main: true
      at 0, m: running("main:2 work:12")
      at 10, m: running("main:3 other:21")
      finish 20
    end
    assert_equal({ "Foo#work" => 9.5, "Bar.other" => 10.5 }, self_ms(p))
    assert_sums_agree p
  end

  def test_from_one_wait_to_another_without_an_age_the_last_interval_is_split
    p = profile do
      thread :m, tid: 1, main: true, inferred: true
      at 0, m: blocked("main:2 sleep")
      at 10, m: blocked("main:3 other:21 sleep")
      finish 20
    end
    assert_equal 10.5, total_ms(p)["Bar.other"]
    assert_equal 20.0, self_ms(p)["Kernel#sleep"]
    assert_sums_agree p
  end

  def test_blocked_time_is_exact_by_the_age_of_the_state
    p = profile do
      thread :m, tid: 1, main: true
      at 0, m: running("main:2 work:12")
      at 10, m: blocked("main:3 sleep", age: 0.7)
      at 30, m: running("main:2 work:12", age: 0.4)
      finish 40
    end
    assert_equal({ "Foo#work" => 19.7, "Kernel#sleep" => 20.3 }, self_ms(p))
    thread = p.threads.threads.first
    assert_equal [19_700_000, 20_300_000], [thread.running_ns, thread.blocked_ns]
  end

  def test_the_five_states_add_up_to_the_life_of_a_thread
    p = profile do
      thread :m, tid: 1, main: true
      thread :w, tid: 2, name: "worker", born: 3.2, dies: 41.4
      at 0, m: running("main:2 work:12")
      at 4, w: gvl_wait("work:12", age: 0.6)
      at 9, w: running("work:13", age: 0.1)
      at 9, m: gvl_wait("main:2", age: 0.1)
      at 20, w: gc("work:13")
      at 26, w: blocked("sleep", age: 0.3)
      gap 30..35
      finish 50
    end
    worker = p.threads.threads.find { |t| t.name == "worker" }
    life = worker.running_ns + worker.gvl_wait_ns + worker.blocked_ns + worker.gc_ns + worker.unknown_ns
    assert_equal worker.end_ns - worker.start_ns, life
    assert_in_delta 38.2 * MS, life, 2 * MS
    assert_sums_agree p
  end

  def test_in_a_gap_it_is_unknown_what_the_common_callers_called
    p = profile do
      thread :runs, tid: 1, main: true
      thread :waits, tid: 2
      at 0, runs: running("main:2 work:12"), waits: blocked("sleep")
      gap 10..30
      at 40, runs: running("main:2 other:22"), waits: blocked("main:2")
      finish 40
    end
    runs, waits = p.threads.threads
    assert_equal [40 * MS, 0], [runs.running_ns, runs.unknown_ns]
    assert_equal [40 * MS, 0], [waits.blocked_ns, waits.unknown_ns]
    assert_equal 20.0, self_ms(p)["(unknown)"]
    assert_equal 40.0, total_ms(p, thread: "1")["<main>"]
    gap = p.gaps.first
    assert_equal [10 * MS, 20 * MS, "late"], [gap.start_ns, gap.duration_ns, gap.reason]
    assert_sums_agree p
  end

  def test_time_without_ticks_and_without_cpu_is_unknown_and_no_work
    p = profile do
      thread :runs, tid: 1, main: true
      thread :waits, tid: 2
      thread :queues, tid: 3
      at 0, runs: running("main:2 work:12"), waits: blocked("sleep"), queues: gvl_wait("other:22")
      gap 10..3010 # stopped by a signal: no CPU
      at 3040, runs: running("main:2 work:13", cpu: 40), waits: running("main:2"), queues: running("other:22")
      finish 3040
    end
    runs, waits, queues = p.threads.threads
    assert_equal [40 * MS, 3000 * MS, 40 * MS], [runs.running_ns, runs.unknown_ns, runs.cpu_ns]
    assert_equal [3040 * MS, 0], [waits.blocked_ns, waits.unknown_ns]
    assert_equal [3040 * MS, 0], [queues.gvl_wait_ns, queues.unknown_ns]
    assert_equal 3000.0, self_ms(p, thread: "1")["(unknown)"]
    assert_in_delta 40.0, self_ms(p, thread: "1")["Foo#work"]
    assert_equal 0, p.functions(metric: :cpu, state: "unknown").total_ns
    assert_equal 3000 * MS, p.functions(state: "unknown").total_ns
    assert_sums_agree p
  end

  def test_cpu_used_in_a_gap_is_work_and_the_rest_unknown
    p = profile do
      thread :m, tid: 1, main: true
      at 0, m: running("main:2 work:12")
      gap 10..110
      at 120, m: running("main:2 work:12", cpu: 60)
      finish 120
    end
    thread = p.threads.threads.first
    assert_equal [60 * MS, 60 * MS, 60 * MS], [thread.running_ns, thread.unknown_ns, thread.cpu_ns]
    assert_sums_agree p
  end

  def test_without_gvl_events_a_running_thread_was_not_blocked_in_a_gap
    p = profile(flags: []) do
      thread :runs, tid: 1, main: true, inferred: true
      thread :waits, tid: 2, inferred: true
      at 0, runs: running("main:2 work:12"), waits: blocked("sleep")
      gap 10..3010
      at 3010, runs: blocked("main:2 work:12", age: 3000), waits: blocked("main:2 sleep")
      finish 3011
    end
    runs, waits = p.threads.threads
    assert_equal [10 * MS, 3000 * MS, 1 * MS], [runs.running_ns, runs.unknown_ns, runs.blocked_ns]
    assert_equal [3011 * MS, 0], [waits.blocked_ns, waits.unknown_ns]
    assert_sums_agree p
  end

  def test_a_function_on_another_line_after_a_gap_is_a_common_caller
    p = profile do
      thread :runs, tid: 1, main: true
      at 0, runs: running("main:2 work:12 other:22")
      gap 10..30
      at 40, runs: running("main:2 work:13 sleep")
      finish 40
    end
    assert_equal 40.0, total_ms(p)["Foo#work"]
    assert_equal 20.0, self_ms(p)["(unknown)"]
    assert_sums_agree p
  end

  def test_what_ran_before_and_after_a_gap_ran_in_it
    p = profile do
      thread :runs, tid: 1, main: true
      at 0, runs: running("main:2 work:12")
      gap 10..30
      at 35, runs: gc("main:2 work:12")
      at 40, runs: running("main:2 work:12")
      finish 40
    end
    assert_nil self_ms(p)["(unknown)"]
    assert_equal 40.0, self_ms(p)["Foo#work"]
    assert_sums_agree p
  end

  def test_a_park_is_no_hole
    p = profile do
      thread :m, tid: 1, main: true
      at 0, m: running("main:2 work:12")
      at 10, m: blocked("main:3 sleep")
      park 12..500
      at 501, m: running("main:2 work:12", age: 0.5)
      finish 510
    end
    thread = p.threads.threads.first
    assert_equal 0, thread.unknown_ns
    assert_in_delta 490.5 * MS, thread.blocked_ns, MS / 2
    assert_sums_agree p
  end

  def test_chunks_join_without_a_seam
    story = proc do
      thread :m, tid: 1, main: true
      at 0, m: running("main:2 work:12")
      at 17, m: blocked("main:3 sleep", age: 0.25)
      at 33, m: running("main:2 other:22", age: 0.5)
      finish 50
    end
    whole = profile(&story)
    cut = profile(name: "b.sdb") do
      instance_eval(&story)
      [10, 17, 20, 34].each { |time| new_chunk time }
    end
    assert_equal self_ms(whole), self_ms(cut)
    assert_equal 0, cut.threads.threads.first.unknown_ns
  end

  def test_the_same_fault_of_many_logs_is_one_warning
    paths = (1..5).map do |n|
      file = RingEncoder.build(pid: n, chunks: 8) do
        instance_eval(&CODES)
        thread :m, tid: n, main: true
        at 0, m: running("main:2")
        new_chunk 10
        new_chunk 20
        finish 30
      end
      file.instance_variable_get(:@chunks).delete(1)
      file.write(File.join(@dir, "#{n}.sdb"))
    end
    assert_equal ["5 logs (1.sdb, 2.sdb, 3.sdb ...): 5 chunks are missing in the middle"],
                 Sdb::Profile.new(paths).warnings.grep(/missing/)
    assert_equal 2, Sdb::Profile.new(paths.first(2)).warnings.grep(/missing/).size
  end

  def test_a_lost_chunk_is_unknown_time_and_said_so
    file = RingEncoder.build(chunks: 8) do
      instance_eval(&CODES)
      thread :m, tid: 1, main: true
      at 0, m: running("main:2 work:12")
      at 15, m: running("main:2 other:22")
      new_chunk 10
      new_chunk 20
      finish 30
    end
    file.instance_variable_get(:@chunks).delete(1)
    p = Sdb::Profile.new([file.write(File.join(@dir, "lost.sdb"))])
    thread = p.threads.threads.first
    assert_operator thread.unknown_ns, :>=, 9 * MS
    assert_equal 30 * MS, thread.running_ns + thread.unknown_ns
    assert_includes p.warnings.join, "1 chunk is missing"
    assert_includes p.gaps.map(&:reason), "lost"
    assert_sums_agree p
  end

  def test_cpu_beyond_busy_time_goes_to_the_blocked_part
    p = profile do
      thread :m, tid: 1, main: true
      at 0, m: running("main:2 work:12")
      at 20, m: blocked("main:3 sleep", age: 10, cpu: 18)
      finish 20
    end
    cpu = p.functions(metric: :cpu)
    assert_equal 18 * MS, cpu.total_ns
    assert_equal [10.0, 8.0], self_ms(p, metric: :cpu).values_at("Foo#work", "Kernel#sleep")
  end

  def test_recursion_counts_once_in_the_total
    p = profile do
      thread :m, tid: 1, main: true
      at 0, m: running("main:2 work:12 work:13 other:21 work:14")
      finish 10
    end
    assert_equal 10.0, total_ms(p)["Foo#work"]
    assert_equal [10 * MS] * 3, p.lines("/app/foo.rb").lines.map(&:total_ns)
    assert_equal [0, 0, 10 * MS], p.lines("foo.rb").lines.map(&:self_ns)
  end

  def test_code_without_a_name_is_counted_and_never_guessed
    p = profile do
      code :late, "Late#one", path: "/app/late.rb", line: 1, named: false
      code :bad, "Bad#one", kind: :invalid
      thread :m, tid: 1, main: true
      at 0, m: running("main:2 late:5")
      at 10, m: running("main:2 bad")
      finish 20
    end
    assert_equal 9_500_000, p.functions.unnamed_ns
    assert_equal [9.5, 10.5], self_ms(p).values_at("(not yet named)", "(unresolved)")
  end

  def test_a_thread_without_ruby_frames_has_its_time_too
    p = profile do
      thread :m, tid: 1
      at 0, m: blocked("")
      finish 10
    end
    assert_equal({ "(no Ruby frames)" => 10.0 }, self_ms(p))
    assert_equal [], p.stacks.threads.first.frames
    assert_sums_agree p
  end

  def test_sdbs_own_thread_is_left_out_unless_asked_for
    p = profile do
      thread :m, tid: 1, main: true
      thread :s, tid: 2, own: true
      at 0, m: running("main:2"), s: blocked("sleep")
      finish 10
    end
    assert_equal 1, p.functions.threads
    assert_equal 2, p.functions(own: true).threads
  end

  def test_gc_is_a_state_of_its_own
    p = profile do
      thread :m, tid: 1, main: true
      at 0, m: running("main:2 work:12")
      at 10, m: running("main:2 work:13", gc: 3)
      finish 20
    end
    thread = p.threads.threads.first
    assert_equal [17 * MS, 3 * MS], [thread.running_ns, thread.gc_ns]
    assert_equal 3 * MS, p.functions(metric: :gc).total_ns
  end
end
