# frozen_string_literal: true

require "test_helper"
require "support/profile_helper"

# Time, threads, states, functions.
class TestProfileFilters < Minitest::Test
  include ProfileHelper

  STORY = proc do
    thread :m, tid: 1, main: true
    thread :w, tid: 2, name: "worker"
    at 0,  m: running("main:2 work:12 gem:6"), w: blocked("sleep")
    at 50, m: running("main:2 other:22", age: 0), w: gvl_wait("sleep", age: 0)
    finish 100
  end

  def test_ranges_cut_segments_exactly
    p = profile(&STORY)
    assert_equal 20 * MS, p.functions(from: 10 * MS, to: 20 * MS).total_ns
    assert_equal 60 * MS, p.functions(last: "30ms").total_ns
    assert_equal 60 * MS, p.functions(from: -30 * MS).total_ns
    assert_equal 40 * MS, p.functions(from: "-30ms", to: -10 * MS).total_ns
    assert_equal 200 * MS, p.functions(from: "00:00:00", to: Time.utc(2030)).total_ns if ENV["TZ"] == "UTC"
    assert_equal 20 * MS, p.functions(from: Time.at(1_764_460_800, 10, :millisecond), to: Time.at(1_764_460_800, 20, :millisecond)).total_ns
    assert_sums_agree p, from: 12_345_678, to: 77_777_777
  end

  def test_a_range_between_two_ticks_has_its_time
    assert_equal 200, profile(&STORY).functions(from: 10 * MS + 300, to: 10 * MS + 400).total_ns
  end

  def test_threads_by_name_tid_and_pid
    p = profile(&STORY)
    assert_equal({ "Kernel#sleep" => 100.0 }, self_ms(p, thread: "worker"))
    assert_equal self_ms(p, thread: "main"), self_ms(p, thread: "1")
    assert_equal self_ms(p, thread: 2), self_ms(p, thread: "worker")
    assert_equal 200 * MS, p.functions(pid: 4242).total_ns
    assert_includes assert_raises(Sdb::FilterError) { p.functions(thread: "nobody") }.message, "worker"
    assert_raises(Sdb::FilterError) { p.functions(pid: 7) }
  end

  def test_a_part_of_a_profile_knows_that_part_alone
    part = profile(&STORY).within(from: 40 * MS, to: 70 * MS, thread: [1])
    assert_equal [30 * MS, 30 * MS], [part.duration_ns, part.functions.total_ns]
    assert_equal [10 * MS, 5 * MS, 0], [part.functions(to: 50 * MS), part.functions(last: "5ms"), part.functions(to: 20 * MS)].map(&:total_ns)
    assert_raises(Sdb::FilterError) { part.functions(thread: "worker") }
    assert_equal 60 * MS, profile(&STORY).within(from: 70 * MS).functions.total_ns
    assert_equal 100 * MS, profile(&STORY).functions(thread: %w[worker nobody]).total_ns
  end

  def test_states
    p = profile(&STORY)
    assert_equal 50 * MS, p.functions(state: "gvl_wait").total_ns
    assert_equal 100 * MS, p.functions(state: %w[blocked gvl_wait]).total_ns
    assert_equal 50 * MS, p.functions(metric: :gvl_wait).total_ns
    assert_raises(Sdb::FilterError) { p.functions(state: "busy") }
    assert_raises(Sdb::FilterError) { p.functions(metric: :fun) }
  end

  def test_focus_keeps_stacks_with_a_matching_function
    p = profile(&STORY)
    assert_equal({ "Gem#call" => 49.5 }, self_ms(p, focus: /Foo/))
    assert_sums_agree_without_threads p, focus: "Foo"
  end

  def test_hidden_frames_give_their_time_to_the_caller
    p = profile(&STORY)
    assert_equal({ "Foo#work" => 49.5, "Bar.other" => 50.5, "Kernel#sleep" => 100.0 }, self_ms(p, hide: /Gem/))
    assert_equal [["<main>", "Foo#work"], ["<main>", "Bar.other"]], p.each_stack(hide: /Gem/, thread: "main").map { |_, _, frames, _| frames.map(&:name) }
    assert_equal 100.0, self_ms(p, hide: /sleep/)["(no Ruby frames)"]
    assert_sums_agree p, hide: /Gem|main/
  end

  def test_only_app_leaves_gems_and_c_out
    p = profile(app_root: "/app", &STORY)
    assert_equal({ "Foo#work" => 49.5, "Bar.other" => 50.5, "(no Ruby frames)" => 100.0 }, self_ms(p, only_app: true))
  end

  def test_patterns_match_names_and_paths
    p = profile(&STORY)
    assert_equal p.functions(focus: /Gem#/).total_ns, p.functions(focus: %r{/gems/}).total_ns
    assert_equal self_ms(p, hide: /Gem#/), self_ms(p, hide: "/gems/")
  end

  def test_only_app_keeps_a_script_outside_the_apps_directory_and_names_not_known
    p = profile(app_root: "/srv/elsewhere") do
      code :late, "(not yet named)"
      thread :m, tid: 1
      at 0, m: running("main:2 work:12 gem:6")
      at 5, m: running("main:2 late")
      finish 10
    end
    assert_equal ["(not yet named)", "Foo#work"], self_ms(p, only_app: true).keys.sort
  end

  def test_filters_that_are_none_are_refused
    assert_includes assert_raises(Sdb::FilterError) { profile(&STORY).functions(treads: 1) }.message, "treads"
  end

  def test_lines_find_a_file_by_its_end
    p = profile(&STORY)
    assert_equal "/app/foo.rb", p.lines("foo.rb").path
    assert_raises(Sdb::FilterError) { p.lines("nope.rb") }
  end

  def test_tree_and_callers
    p = profile(&STORY)
    main = p.tree.roots.find { |node| node.name == "<main>" }
    assert_equal [100 * MS, 0, ["Bar.other", "Foo#work"]], [main.total_ns, main.self_ns, main.children.map(&:name)]
    assert_equal "Gem#call", main.children.last.children.first.name
    callers = p.callers("Foo#work")
    assert_equal [["<main>"], ["Gem#call"]], [callers.callers.map(&:name), callers.callees.map(&:name)]
    assert_equal 49_500_000, callers.functions.first.total_ns
    assert_includes assert_raises(Sdb::FilterError) { p.callers("foo") }.message, "(there are Foo#work)"
  end

  def test_stacks_at_an_instant
    p = profile(&STORY)
    now = p.stacks
    assert_equal [%w[running gvl_wait], ["2025-11-30T00:00:00.100000Z"]], [now.threads.map(&:state), [now.at]]
    before = p.stacks(at: 20 * MS).threads.first
    assert_equal ["running", 0, ["<main>", "Foo#work", "Gem#call"], [2, 12, 6]],
                 [before.state, before.since_ns, before.frames.map(&:name), before.frames.map(&:line)]
  end

  def test_stacks_of_threads_that_pass_the_filters
    p = profile do
      instance_eval(&STORY)
      span 10..30, :m, id: "r", name: "Users#index"
      tags 40, :w, "customer" => "7"
    end
    names = ->(**filters) { p.stacks(**filters).threads.map { |t| t.name || t.tid } }
    assert_equal %w[main], names.call(state: "running")
    assert_equal %w[worker], names.call(focus: "sleep")
    assert_equal %w[worker], names.call(tag: "customer=7")
    assert_equal [%w[main], [], []], [20 * MS, 50 * MS, nil].map { |at| names.call(at: at, request: "r") }
    assert_equal [["<main>"], []], p.stacks(at: 20 * MS, hide: /Foo|Gem|sleep/).threads.map { |t| t.frames.map(&:name) }
  end

  def test_collapsed_escapes_what_its_format_cannot_hold
    p = profile(service: "a;b") do
      code :odd, "odd;name\nline"
      thread :m, tid: 1
      at 0, m: running("odd")
      finish 10
    end
    assert_equal "a:b 4242;1;odd:name line 10000\n", p.collapsed
  end

  def test_several_processes_are_merged_on_one_time_line
    first = ring("1.sdb", pid: 1, &STORY)
    second = ring("2.sdb", pid: 2, start_monotonic_ns: 1_000_000_000_000 + 200 * MS, start_realtime_ns: 5, &STORY)
    p = Sdb::Profile.new([first, second])
    assert_equal [1, 2], p.rings.map(&:pid)
    assert_equal [300 * MS, 400 * MS], [p.duration_ns, p.functions.total_ns]
    assert_equal 200 * MS, p.functions(pid: 2).total_ns
    assert_equal 200 * MS, p.functions(to: 150 * MS).total_ns
    assert_equal [0, 0], p.threads.threads.select { |t| t.name == "main" }.map(&:start_ns)
    assert_equal ["<main>"], p.functions.functions.map(&:name).tally.filter_map { |name, n| name if n == 1 && name == "<main>" }
  end

  def test_a_window_reads_only_the_chunks_that_overlap_it
    path = ring(chunks: 16) do
      instance_eval(&STORY)
      (1..9).each { |n| new_chunk n * 10 }
    end
    last = Sdb::Profile.new([path], window: -15 * MS..)
    assert_equal 60 * MS, last.functions.total_ns, "from the chunk at 70 ms on"
    assert_equal [20 * MS, 0], [last.functions(last: 10 * MS).total_ns, last.functions(to: 60 * MS).total_ns]
    middle = Sdb::Profile.new([path], window: 31 * MS..42 * MS)
    assert_equal 38 * MS, middle.functions.total_ns, "30 to the last tick before 50"
    assert_equal [], middle.warnings
  end

  def test_one_unreadable_file_is_a_warning_and_only_unreadable_ones_an_error
    path = File.join(@dir, "text.sdb")
    File.write(path, "text")
    p = Sdb::Profile.new([path, ring(&STORY)])
    assert_equal 200 * MS, p.functions.total_ns
    assert_equal ["#{path}: not a ring file of sdb"], p.warnings
    assert_raises(Sdb::FormatError) { Sdb::Profile.new([path]).rings }
  end

  def test_a_stepped_clock_changes_no_duration
    p = profile do
      instance_eval(&STORY)
      record(50) { |r| r.clock(50 * MS, 1_764_460_800_000_000_000 + 3_600_000_000_000) }
      span 10..60, :m, id: "x", name: "X"
      span 70..80, :m, id: "y", name: "Y"
    end
    assert_equal 200 * MS, p.functions.total_ns
    assert_equal [50 * MS, 10 * MS], p.spans.spans.map(&:wall_ns)
    assert_equal %w[2025-11-30T00:00:00.010000Z 2025-11-30T01:00:00.020000Z], p.spans.spans.map(&:start)
  end

  def test_what_has_a_number_in_c_has_its_name_from_there
    native = Sdb.const_get(:Native)::Profile
    assert_equal native::STATES, Sdb::Profile::STATES
    assert_equal native::METRICS, Sdb::Profile::METRICS.map(&:to_s)
    assert_equal [native::MARK_FOCUS, native::MARK_HIDE], [Sdb::Profile.const_get(:Selection)::FOCUS, Sdb::Profile.const_get(:Selection)::HIDE]
  end

  def test_documents_are_frozen_and_give_their_json
    answer = profile(&STORY).functions
    assert_predicate answer, :frozen?
    assert_equal %i[schema metric total_ns threads samples unnamed_ns functions lost], answer.to_h.keys
    assert_equal %i[name path line self_ns total_ns], answer.to_h[:functions].first.keys
    assert_equal 202, answer.samples
  end

  private

  def assert_sums_agree_without_threads(profile, **filters)
    answer = profile.functions(**filters)
    assert_equal answer.total_ns, answer.functions.sum(&:self_ns)
    assert_equal answer.total_ns, profile.tree(**filters).roots.sum(&:total_ns)
  end
end
