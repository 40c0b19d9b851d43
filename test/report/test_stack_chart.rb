# frozen_string_literal: true

require "test_helper"
require "stringio"
require "sdb/report/stack_chart"

# The page's data; how it looks and works is tested in test/browser.
class TestReportStackChart < Minitest::Test
  FRAMES = [{ name: "A#b", path: "/app/a.rb", line: 3 }, { name: "Array#each", path: "", line: 0 }].freeze
  SPAN = {
    schema: 1, id: "r-1", kind: "request", name: "A#index", start_ns: 1000, wall_ns: 400, status: 200, tags: { n: 1 },
    runs: [
      { at_ns: 1300, ns: 100, state: "gvl_wait", frames: FRAMES.first(1),
        holder: { span_name: "B#index", thread: "t2", frames: FRAMES } },
      { at_ns: 1000, ns: 250, state: "running", frames: FRAMES, holder: nil },
      { at_ns: 1250, ns: 50, state: "new state", frames: [], holder: nil },
      { at_ns: 1250, ns: 0, state: "running", frames: FRAMES, holder: nil }
    ]
  }.freeze
  Request = Struct.new(:document) { def to_h = document }

  def test_runs_go_on_the_spans_own_clock_in_order_and_an_unknown_state_is_unknown
    _, columns = page(SPAN)
    assert_equal [0, 250, 300], columns["run_at"]
    assert_equal [250, 50, 100], columns["run_ns"]
    assert_equal [0, 4, 1], columns["run_state"]
    assert_equal [2, 0, 1], columns["run_stack"]
    assert_equal [0, 0, 1], columns["run_holder"]
  end

  def test_frames_become_functions_with_category_and_stacks_with_lines
    document, columns = page(SPAN, roots: ["/app"])
    assert_equal ["A#b", "Array#each"], document["strings"].values_at(*columns["func_name"])
    assert_equal %w[app c], document["categories"].values_at(*columns["func_category"])
    assert_equal [[0, 1], [0, 1], [3, 0]], columns.values_at("stack_up", "stack_func", "stack_line")
    assert_equal([{ "span_name" => "B#index", "thread" => "t2" }], document["holders"].map { |holder| holder.except("frames") })
    assert_equal ["A#b", "Array#each"], document["strings"].values_at(*document["holders"][0]["frames"])
  end

  def test_an_object_and_the_parsed_json_of_the_command_give_the_same_page
    expected = page(SPAN)
    assert_equal expected, page(Request.new(SPAN))
    assert_equal expected, page(JSON.parse(JSON.generate(SPAN)))
  end

  def test_a_span_without_runs_makes_a_page
    document, columns = page(SPAN.merge(runs: []))
    assert_equal "A#index", document["span"]["name"]
    assert_empty columns["run_at"]
  end

  private

  def page(span, **options)
    io = StringIO.new
    Sdb::Report::StackChart.render(span, io, title: "t", **options)
    bytes = Zlib.gunzip(io.string[/id="data">([^<]+)</, 1].unpack1("m"))
    size = bytes.unpack1("V")
    document = JSON.parse(bytes.byteslice(4, size).force_encoding(Encoding::UTF_8))
    values = bytes.byteslice(4 + size..).unpack("w*")
    [document, document["columns"].to_h { |name, count| [name, values.shift(count)] }]
  end
end
