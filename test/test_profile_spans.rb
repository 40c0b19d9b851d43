# frozen_string_literal: true

require "test_helper"
require "support/profile_helper"

# Requests and jobs: their times, their runs, who held the GVL.
class TestProfileSpans < Minitest::Test
  include ProfileHelper

  SHOP = proc do
    thread :a, tid: 11, name: "puma 1"
    thread :b, tid: 12, name: "puma 2"
    at 0,  a: running("main:2 work:12"), b: blocked("main:2 sleep")
    at 20, a: gvl_wait("main:2 work:12", age: 0), b: running("main:2 other:25", age: 0)
    at 50, a: running("main:2 work:13", age: 0), b: blocked("main:2 sleep", age: 0)
    at 80, a: blocked("main:2 sleep", age: 0)
    span 10..70, :a, id: "r-1", name: "UsersController#index", status: 200, cpu: 30, gvl_wait: 30, allocations: 7, tags: { customer: "7" }
    span 15..55, :b, id: "r-2", name: "ReportsController#big", status: 500, cpu: 30, blocked: 10
    span 75..nil, :a, id: "r-3", name: "UsersController#index"
    finish 100
  end

  def test_spans_carry_what_their_end_told
    span = profile(&SHOP).spans.spans.first
    assert_equal ["r-1", "request", "UsersController#index", 60 * MS, 30 * MS, 30 * MS, 30 * MS, 200, 7, false],
                 [span.id, span.kind, span.name, span.wall_ns, span.cpu_ns, span.gvl_wait_ns, span.running_ns, span.status,
                  span.allocations, span.open]
    assert_equal [10 * MS, 70 * MS, 4242, 11, { "customer" => "7" }],
                 [span.start_ns, span.end_ns, span.pid, span.tid, span.tags]
  end

  def test_slow_names_the_longest_first_and_who_held_the_gvl
    spans = profile(&SHOP).slow.spans
    assert_equal %w[r-1 r-2 r-3], spans.map(&:id)
    blame = spans.first.blame.first
    assert_equal ["ReportsController#big", "puma 2", 30 * MS], [blame.span_name, blame.thread, blame.ns]
    assert_equal %w[<main> Bar.other], blame.frames.map(&:name)
    assert_equal 1, profile(&SHOP).slow(limit: 1).spans.size
  end

  def test_slow_takes_any_limit_and_none
    p = profile(&SHOP)
    assert_equal [3, 3, 2, 0], [nil, 1 << 62, 2, 0].map { |limit| p.slow(limit: limit).spans.size }
  end

  def test_hidden_frames_are_not_in_the_runs_of_a_request
    p = profile(&SHOP)
    assert_equal [["<main>"]], p.request("r-1", hide: /Foo/).runs.map { |run| run.frames.map(&:name) }.uniq
    assert_equal 60 * MS, p.request("r-1", hide: /Foo/).runs.sum(&:ns)
  end

  def test_an_open_span_says_so_and_has_the_times_of_its_segments
    span = profile(&SHOP).spans.spans.last
    assert_equal ["r-3", true, 25 * MS, 5 * MS, 20 * MS, nil],
                 [span.id, span.open, span.wall_ns, span.running_ns, span.blocked_ns, span.end_ns]
  end

  def test_runs_of_a_request_cover_it_without_holes
    request = profile(&SHOP).request("r-1")
    assert_equal request.wall_ns, request.runs.sum(&:ns)
    at = request.start_ns
    request.runs.each do |run|
      assert_equal at, run.at_ns
      at += run.ns
    end
    assert_equal %w[running gvl_wait running], request.runs.map(&:state)
    holder = request.runs[1].holder
    assert_equal ["puma 2", 30 * MS], [holder.thread, holder.ns]
  end

  def test_an_unknown_request_is_an_error_that_says_so
    error = assert_raises(Sdb::FilterError) { profile(&SHOP).request("nope") }
    assert_includes error.message, "nope"
  end

  def test_filters_by_span_take_only_its_time_on_its_thread
    p = profile(&SHOP)
    assert_equal 60 * MS, p.functions(request: "r-1").total_ns
    assert_equal 85 * MS, p.functions(endpoint: "UsersController#index").total_ns
    assert_equal 85 * MS, p.functions(endpoint: /\AUsers/).total_ns
    assert_equal 60 * MS, p.functions(tag: "customer=7").total_ns
    assert_equal 60 * MS, p.functions(min_duration: "60ms").total_ns
    assert_equal 0, p.functions(request: "r-1", tag: "customer=8").total_ns
    assert_sums_agree p, request: "r-1", state: "gvl_wait"
    assert_equal 0, p.functions(request: "r-1", from: 80 * MS).total_ns
    assert_equal "no request r-9 in these logs", assert_raises(Sdb::FilterError) { p.functions(request: "r-9") }.message
  end

  def test_percentile_is_of_each_endpoint
    p = profile do
      thread :a, tid: 1
      at 0, a: running("main:2 work:12")
      10.times { |n| span (n * 10)..(n * 10 + n + 1), :a, id: "r#{n}", name: "A" }
      span 100..102, :a, id: "b", name: "B"
      finish 110
    end
    assert_equal %w[r9 b], p.spans(percentile: 99).spans.map(&:id)
    assert_equal %w[r4 r5 r6 r7 r8 r9 b], p.spans(percentile: 50).spans.map(&:id)
  end

  def test_nested_spans_belong_to_the_outer_one
    p = profile do
      thread :a, tid: 1
      at 0, a: running("main:2 work:12")
      outer = span 10..50, :a, id: "r", name: "Outer"
      span 20..30, :a, name: "SELECT", kind: "sql", parent: outer
      finish 60
    end
    assert_equal 40 * MS, p.functions(request: "r").total_ns
    assert_equal 10 * MS, p.functions(endpoint: "SELECT").total_ns
    assert_equal %w[Outer], p.slow.spans.map(&:name)
    assert_equal [0, 1], p.spans.spans.map(&:parent)
  end

  def test_a_trace_id_may_come_with_the_end
    p = profile do
      thread :a, tid: 1
      at 0, a: running("main:2 work:12")
      record(10) { |r| r.span_begin(1, 9, 10 * MS, kind: "request", name: "F", request_id: "f") }
      record(40) do |r|
        name = r.string("F")
        r.sized(24, RingEncoder::Bytes.varints(9, 40 * MS, name, 200, 0, 0, 0, 0, 0, 0) + RingEncoder::Bytes.sized("t-77"))
      end
      finish 50
    end
    assert_equal ["t-77", 200], p.spans(trace: "t-77").spans.first.then { |span| [span.trace_id, span.status] }
  end

  def test_a_span_follows_its_fiber_to_another_thread
    p = profile do
      thread :a, tid: 1, name: "a"
      thread :b, tid: 2, name: "b"
      at 0, a: running("main:2 work:12"), b: running("main:2 other:22")
      record(10) { |r| r.span_begin(1, 9, 10 * MS, kind: "request", name: "F", request_id: "f") }
      record(20) { |r| r.span_switch(1, 0, 20 * MS) }
      record(30) { |r| r.span_switch(2, 9, 30 * MS) }
      record(40) { |r| r.span_end(9, 40 * MS, name: "F") }
      finish 50
    end
    assert_equal({ "Foo#work" => 10.0, "Bar.other" => 10.0 }, self_ms(p, request: "f"))
    assert_equal [["running", 10], ["blocked", 10], ["running", 10]], p.request("f").runs.map { |run| [run.state, run.ns / MS] }
  end

  def test_spans_open_since_before_the_oldest_chunk_are_known_by_their_repetition
    path = ring(chunks: 2) do
      thread :a, tid: 1
      at 0, a: running("main:2 work:12")
      span 5..95, :a, id: "long", name: "Job", kind: "job"
      [20, 40, 60, 80].each { |time| new_chunk time }
      finish 100
    end
    p = Sdb::Profile.new([path])
    request = p.request("long")
    assert_equal [90 * MS, 90 * MS], [request.wall_ns, request.runs.sum(&:ns)]
    assert_equal "unknown", request.runs.first.state
    assert_equal 35 * MS, p.functions(request: "long").total_ns
  end

  # Ticks tell at 10 and 11; between them one span ended and the next began.
  def test_no_span_gets_time_of_a_stack_seen_outside_of_it
    p = profile do
      thread :a, tid: 1
      at 0, a: running("main:2 work:12")
      at 11, a: running("main:2 other:25")
      span 1..10.2, :a, id: "one", name: "One"
      span 10.3..20, :a, id: "two", name: "Two"
      finish 20
    end
    assert_equal ["Foo#work"], (self_ms(p, request: "one").keys - ["<main>"])
    assert_equal ["Bar.other"], (self_ms(p, request: "two").keys - ["<main>"])
    assert_in_delta 9.2, total_ms(p, request: "one").fetch("<main>"), 0.01
    assert_in_delta 9.7, total_ms(p, request: "two").fetch("<main>"), 0.01
    assert_sums_agree(p)
  end

  # It waited for the GVL before the change and, though no tick saw it, behind it.
  def test_no_span_gets_the_wait_of_a_stack_seen_outside_of_it
    p = profile do
      thread :a, tid: 1
      at 0, a: gvl_wait("main:2 work:12")
      at 11, a: running("main:2 other:25", age: 0.1)
      span 1..10.2, :a, id: "one", name: "One"
      span 10.3..20, :a, id: "two", name: "Two"
      finish 20
    end
    assert_equal [["Foo#work"], ["Bar.other"]], %w[one two].map { |id| self_ms(p, request: id).keys - ["<main>"] }
    assert_sums_agree(p)
  end

  # A look at 8 and one at 12; between them another value came and went.
  def test_no_tag_gets_time_of_a_stack_seen_for_another_value
    p = profile(interval: 4) do
      thread :a, tid: 1
      tags 0, :a, part: "x"
      at 0, a: running("main:2 work:12")
      tags 9, :a, part: "y"
      tags 11, :a, part: "z"
      at 12, a: running("main:2 other:25")
      finish 20
    end
    assert_equal({ "Foo#work" => 9.0 }, self_ms(p, tag: "part=x"))
    assert_equal({ "(unknown)" => 2.0 }, self_ms(p, tag: "part=y"))
    assert_equal({ "Bar.other" => 9.0 }, self_ms(p, tag: "part=z"))
    assert_sums_agree(p)
  end

  def test_a_value_that_came_and_went_between_two_looks_at_the_same_stack_has_no_frames
    p = profile do
      thread :a, tid: 1
      tags 0, :a, part: "x"
      at 0, a: running("main:2 work:12")
      at 10, a: running("main:2 work:12")
      tags 10.4, :a, part: "y"
      tags 10.6, :a, part: "x"
      at 11, a: running("main:2 work:12")
      finish 20
    end
    assert_equal({ "(unknown)" => 0.2 }, self_ms(p, tag: "part=y"))
    assert_in_delta 19.8, self_ms(p, tag: "part=x").fetch("Foo#work"), 0.001
  end

  # A look at 8, and the end at 11; between them it worked for another value.
  def test_what_a_thread_did_for_another_value_before_it_ended_has_no_frames
    p = profile(interval: 4) do
      thread :a, tid: 1, dies: 11
      tags 0, :a, part: "x"
      at 0, a: running("main:2 work:12")
      tags 9, :a, part: "y"
      finish 16
    end
    assert_equal({ "Foo#work" => 9.0 }, self_ms(p, tag: "part=x"))
    assert_equal({ "(unknown)" => 2.0 }, self_ms(p, tag: "part=y"))
  end

  # What has no tag, or fewer, may be shown with either's stack: it is no value of its own.
  def test_an_interval_without_a_tag_between_two_values_is_divided
    p = profile do
      thread :a, tid: 1
      tags 0, :a, part: "x"
      at 0, a: running("main:2 work:12")
      at 10, a: running("main:2 work:13")
      tags 10.2, :a
      tags 10.4, :a, part: "y"
      at 11, a: running("main:2 other:25")
      finish 20
    end
    assert_equal({ "Foo#work" => 10.2 }, self_ms(p, tag: "part=x"))
    assert_equal({ "Bar.other" => 9.6 }, self_ms(p, tag: "part=y"))
    assert_equal({ "Foo#work" => 10.3, "Bar.other" => 9.7 }, self_ms(p))
  end

  def test_without_a_change_the_last_interval_is_split
    p = profile do
      thread :a, tid: 1
      at 0, a: running("main:2 work:12")
      at 11, a: running("main:2 other:25")
      span 1..20, :a, id: "one", name: "One"
      finish 20
    end
    assert_in_delta 9.5, self_ms(p, request: "one").fetch("Foo#work"), 0.01
  end

  def test_thread_tags_select_time_until_the_next_set
    p = profile do
      thread :a, tid: 1
      at 0, a: running("main:2 work:12")
      tags 10, :a, tenant: "x"
      tags 25, :a, tenant: "y"
      finish 40
    end
    assert_equal [15, 15, 0], %w[x y z].map { |value| p.functions(tag: { tenant: value }).total_ns / MS }
  end

  def test_tags_of_a_process_are_tags_of_all_its_spans_and_threads
    p = profile(tags: { "region" => "eu" }, &SHOP)
    assert_equal p.functions.total_ns, p.functions(tag: "region=eu").total_ns
    assert_equal 3, p.spans(tag: "region=eu").spans.size
    assert_equal "eu", p.spans.spans.first.tags["region"]
  end
end
