# frozen_string_literal: true

require "test_helper"
require "stringio"
require "sdb/report/flamegraph"
require "sdb/report/stack_chart"
require "support/profile_helper"

# What the pages are made from equals what the profile answers, for rings with known times.
class TestReportOfARealProfile < Minitest::Test
  include ProfileHelper

  def busy_profile
    profile(service: "shop", app_root: "/app") do
      thread :m, tid: 1, main: true
      thread :w, tid: 2, name: "worker"
      at 0, m: running("main:2 work:12"), w: blocked("sleep")
      at 10, m: running("main:2 work:13 gem:6"), w: gvl_wait("work:12", age: 0.5)
      at 18, m: gc("main:2 work:13 gem:6")
      at 21, m: gvl_wait("main:3 other:21", age: 0.2), w: running("work:14")
      at 33, m: running("main:3 other:21"), w: blocked("work:15 sleep", age: 0.1)
      span 2..38, :m, id: "r-1", name: "UsersController#index"
      finish 40
    end
  end

  # { name => [self, total] } by the definition: each stack walked up, recursion counted once.
  def figures(data, metric)
    found = Hash.new { |hash, name| hash[name] = [0, 0] }
    data.cells[:stack].zip(data.cells[metric]) do |stack, ns|
      names = []
      at = stack
      until at.negative?
        names << data.strings[data.funcs[:name][data.stacks[:func][at]]]
        at = data.stacks[:parent][at]
      end
      found[names.first][0] += ns
      names.uniq.each { |name| found[name][1] += ns }
    end
    found.reject { |_, times| times.sum.zero? }
  end

  def test_every_metric_has_the_figures_of_sdb_functions
    p = busy_profile
    data = Sdb::Report::ProfileColumns.new(p).data
    Sdb::Profile::METRICS.each do |metric|
      expected = p.functions(metric: metric).functions.to_h { |f| [f.name, [f.self_ns, f.total_ns]] }
      assert_equal expected, figures(data, metric), metric
      refute_empty expected, metric
    end
  end

  def test_filters_select_the_same_time
    p = busy_profile
    data = Sdb::Report::ProfileColumns.new(p, request: "r-1", state: "running").data
    expected = p.functions(request: "r-1", state: "running").functions.to_h { |f| [f.name, [f.self_ns, f.total_ns]] }
    assert_equal expected, figures(data, :wall)
  end

  def test_functions_are_sorted_into_categories_and_facts_are_there
    data = Sdb::Report::ProfileColumns.new(busy_profile).data
    categories = data.funcs[:name].zip(data.funcs[:category]).to_h { |name, category| [data.strings[name], category] }
    assert_equal({ "<main>" => :app, "Foo#work" => :app, "Bar.other" => :app, "Gem#call" => :gem, "Kernel#sleep" => :c },
                 categories.slice("<main>", "Foo#work", "Bar.other", "Gem#call", "Kernel#sleep"))
    assert_match(/\Ashop · pid \d+\z/, data.facts[:process])
    assert_equal 2, data.facts[:threads]
    assert_operator data.facts[:total_ns], :>, 0
  end

  def test_a_request_becomes_a_page_that_holds_all_of_its_time
    request = busy_profile.request("r-1")
    io = StringIO.new
    Sdb::Report::StackChart.render(request, io, title: request.name, roots: ["/app"])
    bytes = Zlib.gunzip(io.string[/id="data">([^<]+)</, 1].unpack1("m"))
    document = JSON.parse(bytes.byteslice(4, bytes.unpack1("V")).force_encoding(Encoding::UTF_8))
    values = bytes.byteslice(4 + bytes.unpack1("V")..).unpack("w*")
    columns = document["columns"].to_h { |name, count| [name, values.shift(count)] }
    assert_equal request.wall_ns, columns["run_ns"].sum
    assert_equal 0, columns["run_at"].first
    assert_equal "UsersController#index", document["span"]["name"]
  end
end
