# frozen_string_literal: true

require "test_helper"
require "stringio"
require "sdb/report/flamegraph"

# The page's bytes and what is in them; how it looks and works is tested in test/browser.
class TestReportFlameGraph < Minitest::Test
  Ring = Struct.new(:pid, :text, :counters, :status, :entry)
  Status = Struct.new(:ruby, :interval_ns, :effective_interval_ns, :ticks, :late_ticks, :cost, :warnings)
  Entry = Struct.new(:start, :argv)
  Functions = Struct.new(:samples, :threads, :total_ns, :unnamed_ns)
  ThreadInfo = Struct.new(:pid, :tid, :name, :states)

  # Two threads; stack 3 and 4 differ in the line only, 5 has no time, 6 is of the second thread alone.
  class Profile
    def rings
      status = Status.new("3.1.2", 1_000_000, 2_000_000, 500, 3, { cpu_ns: 10, gvl_ns: 2, rss_bytes: 99 }, ["SDB_X: no"])
      [Ring.new(77, { "service" => "shop", "app_root" => "/srv/shop" }, { scans: 40, lost_truncated: 1 }, status,
                Entry.new("2024-05-01T14:05:10Z", ["puma"]))]
    end

    def dictionaries
      { stack_parent: [0, 0, 1, 2, 2, 2, 1].pack("L*"), stack_frame: [0, 0, 1, 2, 3, 4, 4].pack("L*"),
        frame_function: [0, 1, 2, 2, 3].pack("L*"), frame_line: [1, 5, 8, 9, 0].pack("L*"),
        functions: [["<main>", "/srv/shop/run.rb", 1], ["Shop#open", "/srv/shop/shop.rb", 4],
                    ["Gem#work", "/g/gems/a-1/a.rb", 7], ["Kernel#sleep", "", 0, 2]] }
    end

    def cell_columns(**filters)
      @asked = filters
      times = { wall: [100, 20, 30, 507], cpu: [90, 15, 0, 0], gvl_wait: [0, 0, 30, 0], blocked: [0, 0, 0, 500], gc: [0, 20, 0, 0] }
      { count: 4, thread: [0, 0, 0, 1].pack("L*"), stack: [3, 4, 2, 6].pack("L*") }.merge(times.transform_values { |ns| ns.pack("Q*") })
    end
    attr_reader :asked

    def thread_infos
      [ThreadInfo.new(77, 78, "main", "inferred"), ThreadInfo.new(77, 79, nil, "inferred")]
    end

    def functions(**) = Functions.new(60, 2, 657, 4)
    def duration_ns = 1000
    def lost = { torn: 1, torn_top: 2, gc: 3, unresolved: 4, queue_full: 5, ring: 6, gap_ns: 7 }
    def warnings = ["x.sdb: lapped"]
  end

  def data
    @data ||= Sdb::Report::ProfileColumns.new(Profile.new).data
  end

  def name_of(stack)
    data.strings[data.funcs[:name][data.stacks[:func][stack]]]
  end

  def test_stacks_that_differ_in_lines_are_one_and_those_without_time_are_left_out
    assert_equal [-1, 0, 1, 0], data.stacks[:parent]
    assert_equal ["<main>", "Shop#open", "Gem#work", "Kernel#sleep"], (0..3).map { |stack| name_of(stack) }
  end

  def test_times_of_stacks_that_became_one_add_up_per_thread_and_metric
    rows = data.cells.values.transpose.to_h { |row| values = data.cells.keys.zip(row).to_h; [[values[:thread], name_of(values[:stack])], values] }
    assert_equal({ wall: 120, cpu: 105, gvl_wait: 0, blocked: 0, gc: 20 }, rows[[0, "Gem#work"]].slice(*data.metrics))
    assert_equal({ wall: 30, cpu: 0, gvl_wait: 30, blocked: 0, gc: 0 }, rows[[0, "Shop#open"]].slice(*data.metrics))
    assert_equal({ wall: 507, cpu: 0, gvl_wait: 0, blocked: 500, gc: 0 }, rows[[1, "Kernel#sleep"]].slice(*data.metrics))
  end

  def test_functions_have_place_and_category
    assert_equal %i[app app gem c], data.funcs[:category]
    assert_equal [1, 4, 7, 0], data.funcs[:line]
    assert_equal ["/srv/shop/run.rb", "/srv/shop/shop.rb", "/g/gems/a-1/a.rb", nil], data.funcs[:path].map { |path| path && data.strings[path] }
    assert_equal ["run.rb", "shop.rb", "a-1/a.rb", nil], data.funcs[:place].map { |path| path && data.strings[path] }
  end

  def test_facts_tell_what_was_recorded_and_lost
    facts = data.facts
    assert_equal ["shop · pid 77", "3.1.2", 2_000_000, "inferred"], facts.values_at(:process, :ruby, :interval_ns, :states)
    assert_equal [60, 2, 657, 4, 1000, 500, 3, 40], facts.values_at(:samples, :threads, :total_ns, :unnamed_ns, :duration_ns, :ticks, :late_ticks, :scans)
    assert_equal({ torn: 1, torn_top: 2, gc: 3, unresolved: 4, queue_full: 5, ring: 6, gap_ns: 7, truncated: 1 }, facts[:lost])
    assert_equal({ cpu_ns: 10, gvl_ns: 2, rss_bytes: 99 }, facts[:cost])
    assert_equal ["x.sdb: lapped", "SDB_X: no"], facts[:warnings]
  end

  def test_filters_go_to_the_profile_except_those_that_can_be_undone_in_the_page
    profile = Profile.new
    document = page(profile, hide: /^Kernel#/, only_app: true, thread: "main", metric: :cpu)
    assert_equal({ thread: "main" }, profile.asked)
    assert_equal({ "metric" => "cpu", "only_app" => true, "hide" => "^Kernel#" }, document["initial"])
  end

  def test_payload_holds_the_columns_in_the_documented_form
    document, rest = page(Profile.new, raw: true)
    values = rest.unpack("w*")
    columns = document["columns"].to_h { |name, count| [name, values.shift(count)] }
    assert_empty values
    assert_equal [0, 1, 1, 3], columns["stack_up"]
    assert_equal data.cells[:wall], columns["wall"]
    assert_equal "a <b> & \"c\"", document["title"]
  end

  def test_a_stack_that_comes_before_its_caller_is_refused
    bad = Sdb::Report::FlameData.new(strings: ["a"], funcs: { name: [0], path: [nil], line: [0], category: [:app] }, threads: [],
                                     stacks: { parent: [1, -1], func: [0, 0] }, cells: { stack: [], thread: [], wall: [] })
    assert_raises(ArgumentError) { bad.columns }
  end

  def test_names_of_any_bytes_become_valid_text
    assert_equal "a\u{FFFD}b", Sdb::Report::Page.clean("a\xFFb".b)
    assert_equal "ä", Sdb::Report::Page.clean("\xE4".dup.force_encoding("ISO-8859-1"))
    assert_predicate Sdb::Report::Page.clean("\xC3".b), :valid_encoding?
  end

  def test_the_shell_without_data_stays_small
    empty = Sdb::Report::FlameData.new(strings: [], funcs: { name: [], path: [], line: [], category: [] }, threads: [],
                                       stacks: { parent: [], func: [] }, cells: { stack: [], thread: [], wall: [] })
    io = StringIO.new
    Sdb::Report::FlameGraph.render(empty, io, title: "")
    assert_operator io.string.bytesize, :<=, 72 << 10
  end

  private

  def page(profile, raw: false, **options)
    io = StringIO.new
    Sdb::Report::FlameGraph.render(profile, io, title: "a <b> & \"c\"", **options)
    assert_includes io.string, "<title>a &lt;b&gt; &amp; &quot;c&quot;</title>"
    bytes = Zlib.gunzip(io.string[/id="data">([^<]+)</, 1].unpack1("m"))
    size = bytes.unpack1("V")
    document = JSON.parse(bytes.byteslice(4, size).force_encoding(Encoding::UTF_8))
    raw ? [document, bytes.byteslice(4 + size..)] : document
  end
end
