# frozen_string_literal: true

require "test_helper"
require "support/recording_helper"

# Sdb.span and its friends, recorded and read back.
class TestSpans < Minitest::Test
  include RecordingHelper

  MS = 1_000_000

  def test_nothing_is_recorded_and_the_block_runs_before_start
    assert_equal 5, Sdb.span("x", kind: :job, id: "a", k: 1) { 5 }
    assert_equal 6, Sdb.tag(a: 1) { 6 }
    assert_equal({}, Sdb.tags)
    assert_nil Sdb.mark("deploy")
    assert_nil Sdb.current_span
  end

  def test_a_span_has_its_name_kind_id_tags_and_status
    profile = record { Sdb.span("import", kind: :job, id: "job-1", customer: 7, "päth" => :x) { :answer } }
    span = spans_by_name(profile).fetch("import")
    assert_equal ["job", "job-1", "ended", { "customer" => "7", "päth" => "x" }, false],
                 [span.kind, span.id, span.status, span.tags, span.open]
    assert_equal Process.pid, span.pid
  end

  def test_the_times_of_a_span_are_exact
    burned = 0.03
    profile = record do
      Sdb.span("work") do
        burn(burned)
        sleep 0.05
      end
    end
    span = spans_by_name(profile).fetch("work")
    assert_operator span.wall_ns, :>=, 80 * MS
    assert_in_delta burned * 1000, span.cpu_ns / 1e6, 2.0
    assert_operator span.blocked_ns, :>=, 45 * MS
    return if RUBY_VERSION < "3.2" # states are inferred there, and what a late tick missed is unknown

    assert_equal span.wall_ns, span.running_ns + span.gvl_wait_ns + span.blocked_ns + span.gc_ns
  end

  def test_allocations_are_those_of_the_span
    profile = record do
      Sdb.span("few") { 10.times { Object.new } }
      Sdb.span("many") { 10_000.times { Object.new } }
    end
    spans = spans_by_name(profile)
    assert_in_delta 10, spans.fetch("few").allocations, 5
    assert_in_delta 10_000, spans.fetch("many").allocations, 20
  end

  def test_objects_of_other_threads_are_not_counted_where_gvl_events_exist
    skip "no GVL events before Ruby 3.2: allocations are of the process" unless RUBY_VERSION >= "3.2"
    profile = record do
      stop = false
      other = Thread.new { Object.new until stop }
      Sdb.span("mine") do
        100.times { Object.new }
        sleep 0.1
      end
      stop = true
      other.join
    end
    assert_in_delta 100, spans_by_name(profile).fetch("mine").allocations, 30
  end

  # On 3.2 the VM tells of a thread's begin before it says which thread that is.
  def test_objects_of_a_new_thread_are_its_own_from_its_first_moment_on
    skip "no GVL events before Ruby 3.2: allocations are of the process" unless RUBY_VERSION >= "3.2"
    profile = record do
      Sdb.span("warm") { Thread.new { nil }.join }
      Sdb.span("mine") { Thread.new { 5000.times { Object.new } }.join }
    end
    assert_operator spans_by_name(profile).fetch("mine").allocations, :<, 1000
  end

  def test_nested_spans_name_their_parents
    profile = record do
      Sdb.span("outer", id: "o-1") do
        Sdb.span("middle", id: "m-1") { Sdb.span("inner") { sleep 0.005 } }
        Sdb.span("second") { sleep 0.005 }
      end
    end
    assert_equal({ "outer" => nil, "middle" => "outer", "inner" => "middle", "second" => "outer" }, parents(profile))
    assert_equal ["outer"], profile.slow.spans.map(&:name)
  end

  def test_samples_in_the_block_belong_to_the_span_and_its_parents
    profile = record do
      Sdb.span("outer", id: "o-1") do
        Sdb.span("inner", id: "i-1") { burn(0.05) }
        burn(0.03)
      end
      burn(0.04)
    end
    { "i-1" => 50, "o-1" => 80 }.each do |id, ms|
      assert_in_delta ms, profile.functions(metric: :cpu, request: id).total_ns / 1e6, 4, id
    end
  end

  def test_ids_are_made_up_for_spans_without_parent_and_can_be_asked_for
    made = inner = nil
    profile = record do
      Sdb.span("outer") do
        made = Sdb.current_span.id
        Sdb.span("inner") { inner = Sdb.current_span.id }
      end
    end
    assert_match(/\A\h{16}\z/, made)
    assert_nil inner
    assert_equal made, spans_by_name(profile).fetch("outer").id
    assert_equal "outer", profile.request(made).name
  end

  def test_the_open_span_takes_name_status_tags_and_trace
    profile = record do
      Sdb.span("before", a: 1) do
        span = Sdb.current_span
        span.name = "after"
        span.status = 404
        span.trace_id = "0af7651916cd43dd8448eb211c80319c"
        span.tag(b: 2)
        assert_equal "0af7651916cd43dd8448eb211c80319c", Sdb.current_span.trace_id
        assert_equal({ a: 1, b: 2 }, Sdb.tags)
        assert Sdb.tag(c: 3)
      end
      refute Sdb.tag(d: 4)
    end
    span = spans_by_name(profile).fetch("after")
    assert_equal [404, { "a" => "1", "b" => "2", "c" => "3" }, "0af7651916cd43dd8448eb211c80319c"],
                 [span.status, span.tags, span.trace_id]
    assert_equal ["after"], profile.spans(trace: "0af7651916cd43dd8448eb211c80319c").spans.map(&:name)
  end

  def test_what_leaves_the_block_is_told_apart
    profile = record do
      assert_raises(RuntimeError) { Sdb.span("raised") { raise "x" } }
      catch(:out) { Sdb.span("thrown") { throw :out } }
      [1].each { Sdb.span("broken") { break } }
      leave
      begin
        raise "earlier"
      rescue RuntimeError
        Sdb.span("after rescue") { nil }
        catch(:out) { Sdb.span("thrown in rescue") { throw :out } }
      end
    end
    statuses = spans_by_name(profile).transform_values(&:status)
    assert_equal({ "raised" => "raised", "thrown" => "ended", "broken" => "ended", "returned" => "ended",
                   "after rescue" => "ended", "thrown in rescue" => "ended" }, statuses)
  end

  def leave
    Sdb.span("returned") { return }
  end

  def test_the_span_of_a_killed_thread_ends
    profile = record do
      thread = Thread.new { Sdb.span("killed") { sleep } }
      sleep 0.05
      thread.kill.join
      sleep 0.05
    end
    refute spans_by_name(profile).fetch("killed").open
  end

  def test_a_span_still_open_at_the_end_of_the_log_is_open
    profile = nil
    Sdb.span("not recorded") do
      start
      Sdb.span("open") do
        sleep 0.02
        profile = Sdb.open(Sdb.stop)
      end
    end
    assert_equal ["open"], spans_of(profile).map(&:name)
    assert spans_of(profile).first.open
  end

  def test_spans_survive_a_restart_in_their_midst
    nil
    start
    Sdb.span("first log") do
      first = Sdb.stop
      start
      Sdb.span("second log") { sleep 0.01 }
      refute_equal first, Sdb.status[:ring]
    end
    Sdb.span("later") { nil }
    second = Sdb.open(Sdb.stop)
    spans = spans_by_name(second)
    assert_equal ["second log", "later"], spans.keys
    assert_equal [0, 0], spans.values.map(&:parent)
  end

  def test_a_child_forked_in_the_midst_works_for_what_its_parent_worked_for
    start
    child = Sdb.span("parent", kind: :job, id: "p-1", customer: 7) do
      Sdb.span("inner") do
        in_child do
          burn(0.03) # and no word to sdb before
          Sdb.span("child") { burn(0.03) }
          Sdb.stop
        end
      end
    end
    parent = Sdb.open(Sdb.stop)
    assert_equal %w[parent inner], spans_by_name(parent).keys
    assert_empty(spans_of(parent).select(&:open))
    profile = Sdb.open(child)
    spans = spans_by_name(profile)
    assert_equal %w[parent inner child], spans.keys
    assert_equal({ "parent" => nil, "inner" => "parent", "child" => "inner" }, parents(profile))
    assert_equal ["job", "p-1", true], spans.fetch("parent").then { |span| [span.kind, span.id, span.open] }
    # all of the child's time, from its first moment on
    all = profile.functions.total_ns
    assert_in_delta all, profile.functions(tag: "customer=7").total_ns, 5e6
    assert_in_delta all, profile.functions(request: "p-1").total_ns, 5e6
    assert_in_delta 30, spans.fetch("child").cpu_ns / 1e6, 5
  end

  def test_a_grandchild_forked_in_a_fiber_works_for_the_same
    start
    grandchild = Sdb.span("outer", id: "o-1") do
      Fiber.new do
        Sdb.span("in fiber") { in_child { Sdb.span("second") { in_child { burn(0.02) || Sdb.stop } } } }
      end.resume
    end
    profile = Sdb.open(grandchild)
    assert_equal({ "outer" => nil, "in fiber" => "outer", "second" => "in fiber" }, parents(profile))
    assert_in_delta profile.functions.total_ns, profile.functions(request: "o-1").total_ns, 5e6
  end

  def test_the_block_of_a_span_may_end_in_the_child
    start
    reader, writer = IO.pipe
    Sdb.span("both") { fork }.then do |pid|
      if pid.nil?
        Sdb.span("after") { nil }
        writer.write(Sdb.stop.to_s)
        exit!(0)
      end
      writer.close
      Process.wait(pid)
      assert_predicate $?, :success?
    end
    child = reader.read
    assert_equal %w[both], spans_by_name(Sdb.open(Sdb.stop)).keys
    spans = spans_by_name(Sdb.open(child))
    assert_equal %w[both after], spans.keys
    refute spans.fetch("both").open
    assert_equal 0, spans.fetch("after").parent
  end

  def test_a_hundred_thousand_request_ids_cost_no_memory
    start
    sleep 0.05
    1000.times { |n| Sdb.span("warm", id: "warm-#{n}", customer: n) { nil } }
    objects = live_objects
    rss = Sdb.status[:cost][:rss_bytes]
    100_000.times do |n|
      Sdb.span("request", kind: :request, id: "request-#{n}", customer: n) { nil }
      sleep 0.001 if (n % 200).zero?
    end
    sleep 1.1
    assert_in_delta objects, live_objects, 500
    assert_operator Sdb.status[:cost][:rss_bytes] - rss, :<, 2 << 20
    profile = Sdb.open(Sdb.stop)
    assert_equal "request-99999", spans_of(profile).last.id
  end

  def live_objects
    GC.start
    GC.stat(:heap_live_slots)
  end

  def test_what_does_not_fit_is_counted_and_no_begun_span_is_left_open
    start
    50_000.times { |n| Sdb.span("s", id: "id-#{n}", filler: "x" * 200) { nil } }
    sleep 0.1
    lost = Sdb.status[:lost][:queue_full]
    profile = Sdb.open(Sdb.stop)
    spans = spans_of(profile)
    assert_operator spans.size, :>, 100
    assert_empty spans.select(&:open)
    assert_operator lost + spans.size, :>=, 50_000
  end

  def test_long_strings_are_cut_and_many_tags_are_left_out_and_it_shows
    many = (0...200).to_h { |n| [:"tag#{n}", "v" * 50] }
    profile = record { Sdb.span("n" * 5000, id: "i" * 5000, **many) { nil } }
    span = spans_of(profile).first
    assert_equal ["#{"n" * 1021}…", "#{"i" * 1021}…"], [span.name, span.id].map { |text| text.dup.force_encoding("UTF-8") }
    assert_operator span.tags.size, :>, 20
    assert_equal ["…", "more were left out"], span.tags.to_a.last
  end

  def test_open_spans_are_told_again_in_each_chunk
    start(ring: 4 << 20)
    words = nil
    Sdb.span("long", id: "long-1", customer: 7) do
      words = Thread.new { Sdb.tag(role: "busy") { fill_ring } }
      words.join
    end
    profile = Sdb.open(Sdb.stop)
    span = spans_by_name(profile).fetch("long")
    assert_operator profile.rings.first.retained_ns, :<, span.wall_ns, "the ring has not come round"
    assert_equal ["long-1", { "customer" => "7" }, false], [span.id, span.tags, span.open]
    assert_operator profile.functions(tag: "role=busy").total_ns, :>, 0
  end

  # Chunks fill with spans fastest.
  def fill_ring
    12_000.times do |n|
      Sdb.span("fill", id: "#{n}-#{"x" * 600}") { nil }
      sleep 0.001 if (n % 30).zero?
    end
  end

  def test_marks_are_in_the_log
    profile = record do
      Sdb.mark("deploy 42")
      sleep 0.01
    end
    assert_equal ["deploy 42"], profile.marks.map(&:text)
  end

  def test_a_handle_may_end_its_span_on_another_thread
    profile = record do
      span = Sdb.begin_span("handed over", :request, "h-1", nil, { a: 1 }, true)
      sleep 0.01
      Thread.new { span.finish(200) }.join
      span.finish(500)
      assert_nil span.id
      Sdb.span("later") { nil }
      sleep 0.01
    end
    spans = spans_by_name(profile)
    assert_equal [200, false], [spans.fetch("handed over").status, spans.fetch("handed over").open]
    assert_equal 0, spans.fetch("later").parent
  end

  def test_a_returned_span_that_nobody_ends_is_ended_by_the_next_outermost
    profile = record do
      begin_span("first").returned
      Sdb.span("body") { nil }
      second = begin_span("second")
      third = begin_span("third")
      third.finish
      second.finish
    end
    spans = spans_by_name(profile)
    assert_empty spans.values.select(&:open)
    assert_nil spans.fetch("first").status
    assert_equal({ "first" => nil, "body" => "first", "second" => nil, "third" => "second" }, parents(profile))
  end

  def begin_span(name) = Sdb.begin_span(name, :request, name, nil, nil, true)

  def test_names_that_raise_begin_nothing
    bad = Object.new
    def bad.to_s = raise(ArgumentError, "no name")
    profile = record do
      assert_raises(ArgumentError) { Sdb.span("x", tag: bad) { flunk } }
      assert_raises(ArgumentError) { Sdb.span(bad) { flunk } }
      assert_raises(LocalJumpError) { Sdb.span("x") }
      Sdb.span("good") { nil }
    end
    assert_equal [0], spans_of(profile).map(&:parent)
  end
end
