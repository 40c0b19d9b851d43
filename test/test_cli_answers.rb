# frozen_string_literal: true

require_relative "test_helper"
require "support/cli_helper"
require "support/sample_ring"

# Each command over a ring whose times are known, with the real reader. Fields are compared with the contract.
class CLIAnswersTest < Minitest::Test
  include CLIHelper

  SPAN = %w[id kind name start wall_ns cpu_ns running_ns gvl_wait_ns blocked_ns gc_ns allocations status pid tid tags
            open blame].freeze
  MS = 1_000_000

  DIR = Dir.mktmpdir
  RING = SampleRing.write(File.join(DIR, "4242-5000-0123456789abcdef.sdb"))
  Minitest.after_run { FileUtils.rm_rf(DIR) }

  def json(*words) = sdb!(*words, "--json").json

  # The documented fields are there, in that order, and what else is there comes behind them.
  def assert_fields(names, document)
    assert_equal names, document.keys.first(names.size)
  end

  def test_functions_says_whose_time_it_was
    document = json("functions", RING)
    assert_fields %w[schema metric total_ns threads samples unnamed_ns functions], document
    assert_equal [1, "wall", 3, 0], document.values_at("schema", "metric", "threads", "unnamed_ns")
    assert_equal 3000 * MS, document["total_ns"]
    document["functions"].each { |f| assert_equal %w[name path line self_ns total_ns], f.keys }
    assert_equal document["total_ns"], document["functions"].sum { |f| f["self_ns"] }
    users = document["functions"].find { |f| f["name"] == "UsersController#index" }
    assert_equal ["/app/users.rb", 10], users.values_at("path", "line")
    assert_in_delta 210 * MS, users["total_ns"], 2 * MS
  end

  def test_functions_as_text_is_aligned_and_complete_when_piped
    out = sdb!("functions", RING).out
    assert_match(/^wall 3\.00 s +3 threads +[\d,]+ samples +of shop, pid 4242$/, out)
    assert_match(%r{UsersController#index  /app/users\.rb:10$}, out)
    refute_includes out, "\e["
    limited = with_env("LC_ALL" => "C") { sdb!("functions", "--limit", "2", RING).out.lines.drop(3) }
    assert_equal [3, "... 3 more (--limit 0 shows all)\n"], [limited.size, limited.last]
    assert_equal 1, sdb("slow", "--endpoint", "Nobody#here", RING).status
  end

  def test_functions_narrows_by_every_kind_of_filter
    { %w[--thread main] => 1000, %w[--request slow-1] => 200, %w[--endpoint ReportsController#show] => 860,
      %w[--state gvl_wait] => 120, %w[--metric gvl_wait] => 120, %w[--last 500ms] => 1500, %w[--to 100ms] => 300,
      %w[--from 0.9s] => 300, %w[--from -100ms] => 300, %w[--focus nothing] => nil, %w[--focus UsersController] => 210, %w[--focus /users.rb] => 210,
      %w[--min-duration 150ms --endpoint UsersController#index] => 200, %w[--pid 4242] => 3000 }.each do |words, ms|
      total = json("functions", *words, RING)["total_ns"]
      assert_in_delta ms.to_i * MS, total, 2 * MS, words.join(" ")
    end
  end

  def test_lines_finds_the_file_by_its_end_and_shows_each_line
    document = json("lines", "users.rb", RING)
    assert_fields %w[schema path lines], document
    assert_equal "/app/users.rb", document["path"]
    assert_equal [12, 13, 14], document["lines"].map { |l| l["line"] }
    document["lines"].each { |l| assert_equal %w[line self_ns total_ns], l.keys }
    assert_in_delta 120 * MS, document["lines"][1]["self_ns"], MS
    assert_match(/120 ms +120 ms +13$/, sdb!("lines", "users.rb", RING).out)
  end

  def test_lines_of_a_file_that_is_not_in_the_log_is_an_error_that_says_so
    answer = sdb("lines", "nosuch.rb", RING)
    assert_equal [1, ""], [answer.status, answer.out]
    assert_includes answer.err, "nosuch.rb"
  end

  def test_threads_add_up_to_their_lives
    document = json("threads", RING)
    fields = %w[pid tid name start_ns end_ns running_ns gvl_wait_ns blocked_ns gc_ns cpu_ns unknown_ns states]
    document["threads"].each do |thread|
      assert_equal fields, thread.keys
      states = thread.values_at("running_ns", "gvl_wait_ns", "blocked_ns", "gc_ns", "unknown_ns").sum
      assert_in_delta 1000 * MS, states, 2 * MS
    end
    worker = document["threads"].find { |t| t["tid"] == 4243 }
    assert_equal ["puma srv tp 001", "exact"], worker.values_at("name", "states")
    assert_in_delta 120 * MS, worker["gvl_wait_ns"], MS
    assert_equal "main", document["threads"].find { |t| t["tid"] == 4242 }["name"]
    assert_match(/4243 .* puma srv tp 001$/, sdb!("threads", RING).out)
  end

  def test_tree_nests_and_can_be_pruned
    document = json("tree", RING)
    assert_fields %w[schema metric total_ns roots], document
    users = document["roots"].find { |n| n["name"] == "UsersController#index" }
    assert_equal %w[name path line self_ns total_ns children], users.keys
    assert_equal ["Integer#times"], users["children"].map { |n| n["name"] }
    assert_empty json("tree", "--depth", "1", RING)["roots"].flat_map { |n| n["children"] }
    assert_operator json("tree", "--min", "20", RING)["roots"].size, :<, document["roots"].size
    out = sdb!("tree", RING).out
    assert_match(/UsersController#index/, out)
    assert_equal 2, sdb("tree", "--min", "all", RING).status
  end

  def test_tree_draws_branches
    out = with_env("LC_ALL" => "C") { sdb!("tree", "--min", "0", "--focus", "ReportsController", RING).out }
    assert_match(/^ +\d+ ms 100\.0% +ReportsController#show/, out)
    assert_match(/\|- IO#read\n.*`- Integer#times/, out)
  end

  def test_callers_names_both_sides
    document = json("callers", "UsersController#index", RING)
    assert_fields %w[schema metric total_ns functions callers callees], document
    assert_equal ["UsersController#index"], document["functions"].map { |f| f["name"] }
    assert_equal ["Integer#times"], document["callees"].map { |f| f["name"] }
    assert_equal 2, json("callers", "/Controller#/", RING)["functions"].size
    assert_equal 2, sdb("callers", "/(/", RING).status
    assert_equal 1, sdb("callers", "Nobody#knows", RING).status
  end

  def test_slow_names_the_slowest_and_who_held_the_gvl
    spans = json("slow", RING)["spans"]
    spans.each { |span| assert_fields SPAN, span }
    assert_equal %w[open-1 slow-1 quick-1], spans.map { |s| s["id"] }
    assert_equal [true, false, false], spans.map { |s| s["open"] }
    slow = spans[1]
    assert_equal ["request", 200 * MS, 120 * MS, 80 * MS, 1234, 200, 4242, 4243, { "customer" => "7" }],
                 slow.values_at("kind", "wall_ns", "gvl_wait_ns", "cpu_ns", "allocations", "status", "pid", "tid", "tags")
    blame = slow["blame"].first
    assert_equal %w[span_name thread ns frames], blame.keys
    assert_equal "ReportsController#show", blame["span_name"]
    assert_in_delta 120 * MS, blame["ns"], 2 * MS
    assert_equal "Integer#times", blame["frames"].last["name"]
  end

  def test_slow_as_text_limits_and_sorts
    out = sdb!("slow", RING).out
    assert_match(/200 ms .*slow-1 +UsersController#index$/, out)
    assert_match(/waited 120 ms for the GVL, held by ReportsController#show, thread puma srv tp 002 in Integer#times/, out)
    assert_equal %w[open-1], json("slow", "--limit", "1", RING)["spans"].map { |s| s["id"] }
    assert_equal "slow-1", json("slow", "--metric", "gvl_wait", RING)["spans"].first["id"]
    assert_includes sdb!("slow", "--min-duration", "10s", RING).out, "no requests or jobs"
  end

  def test_request_covers_the_whole_span
    document = json("request", "slow-1", RING)
    assert_fields ["schema", *SPAN], document
    runs = document["runs"]
    runs.each { |run| assert_equal %w[at_ns ns state frames holder], run.keys }
    assert_equal document["wall_ns"], runs.sum { |run| run["ns"] }
    runs.each_cons(2) { |a, b| assert_equal a["at_ns"] + a["ns"], b["at_ns"] }
    assert_equal %w[running gvl_wait running], runs.map { |run| run["state"] }
    assert_equal "ReportsController#show", runs[1]["holder"]["span_name"]
    assert_equal %w[name path line], runs[0]["frames"].first.keys
  end

  def test_slow_on_a_narrow_terminal_keeps_what_tells_most
    lines = sdb!("slow", RING, out: CLIHelper::FakeTerminal.new(80)).out.gsub(/\e\[[\d;]*m/, "").lines.map(&:chomp)
    assert_includes lines.map(&:split), %w[wall gvl_wait blocked start id name]
    assert_empty(lines.select { |line| line.length > 80 })
  end

  def test_request_sums_up_who_held_the_gvl
    out = sdb!("request", "slow-1", RING).out
    assert_match(/held by\n +120 ms  ReportsController#show, thread puma srv tp 002 in Integer#times$/, out)
  end

  def test_request_as_text_draws_it_and_an_unknown_id_is_an_error
    out = with_env("LC_ALL" => "C") { sdb!("request", "slow-1", RING).out }
    assert_includes out, "UsersController#index   slow-1   status 200"
    assert_match(/200 ms +#+~+#+ +UsersController#index/, out)
    assert_match(/40.\d ms +#+ +Integer#times/, out)
    assert_match(/gvl_wait +UsersController#index/, sdb!("request", "slow-1", "--runs", RING).out)
    answer = sdb("request", "nosuch", RING)
    assert_equal [1, ""], [answer.status, answer.out]
    assert_includes answer.err, "nosuch"
  end

  def test_stacks_tell_what_every_thread_did_last_or_then
    document = json("stacks", RING)
    assert_fields %w[schema at threads], document
    thread = document["threads"].find { |t| t["tid"] == 4244 }
    assert_equal %w[tid name state since_ns span frames].sort, (thread.keys - ["pid"]).sort
    assert_equal ["blocked", "ReportsController#show", 260 * MS], thread.values_at("state", "span", "since_ns")
    assert_equal %w[ReportsController#show IO#read], thread["frames"].map { |f| f["name"] }
    then_ = json("stacks", "--to", "200ms", RING)["threads"].find { |t| t["tid"] == 4243 }
    assert_equal "gvl_wait", then_["state"]
    assert_match(/thread 4244 .* blocked  for 7\d\d ms  in ReportsController#show\n    IO#read\n    ReportsController#show/,
                 sdb!("stacks", RING).out)
  end

  def test_top_looks_once_when_piped
    document = json("top", RING)
    assert_equal %w[schema at metric total_ns threads functions], document.keys
    assert_equal "cpu", document["metric"]
    assert_match(/IO#read/, sdb!("top", "--metric", "wall", RING).out)
    assert_equal 2, sdb!("top", "--count", "2", "--every", "100ms", "--json", RING).out.lines.size
  end

  def test_export_collapsed_is_one_line_a_stack_in_microseconds
    lines = sdb!("export", "collapsed", RING).out.lines.map(&:chomp)
    stack, micros = lines.grep(/UsersController#index;Integer#times/).first.split(/ (?=\d+\z)/)
    assert_equal "shop 4242;puma srv tp 001;UsersController#index;Integer#times", stack
    assert_in_delta 40_000, micros.to_i, 1000
    assert_in_delta 3_000_000, lines.sum { |line| line[/\d+\z/].to_i }, 10
    assert_match(%r{UsersController#index /app/users.rb:12;Integer#times \d+$},
                 sdb!("export", "--lines", "collapsed", RING).out)
  end

  def test_export_to_a_file_prints_where_and_unknown_formats_name_the_nearest
    file = File.join(DIR, "out.txt")
    assert_equal "#{file}\n", sdb!("export", "collapsed", "-o", file, RING).out
    assert_equal sdb!("export", "collapsed", RING).out, File.read(file)
    assert_equal File.size(file), sdb!("export", "collapsed", "-o", file, "--json", RING).json["bytes"]
    answer = sdb("export", "colapsed", RING)
    assert_equal 2, answer.status
    assert_includes answer.err, "Did you mean collapsed?"
    assert_equal 2, sdb("export", "collapsed", "--json", RING).status
  end

  def test_flamegraph_writes_one_html_file
    file = File.join(DIR, "f.html")
    assert_equal "#{file}\n", sdb!("flamegraph", "-o", file, RING).out
    assert_match(/\A<!DOCTYPE html>/, File.read(file))
    assert_equal file, sdb!("flamegraph", "-o", file, "--json", RING).json["path"]
    assert_equal 2, sdb("flamegraph", "-o", "-", "--json", RING).status
  end

  def test_the_page_of_one_request_is_its_stack_chart_with_a_time_line
    chart = sdb!("request", "slow-1", "-o", "-", RING).out
    assert_includes chart, 'aria-label="Stack chart"'
    assert_equal chart, sdb!("flamegraph", "--request", "slow-1", "-o", "-", RING).out
    assert_includes chart, "<title>UsersController#index slow-1</title>"
    graph = sdb!("flamegraph", "--request", "slow-1", "--metric", "cpu", "-o", "-", RING).out
    assert_match(/<title>shop: cpu/, graph)
    Dir.chdir(DIR) { assert_equal "request.html\n", sdb!("request", "slow-1", "--html", File.expand_path(RING)).out }
    assert_equal 1, sdb("flamegraph", "--request", "nosuch", "-o", "-", RING).status
  end

  def test_filters_that_mean_nothing_to_a_command_are_named
    assert_equal "sdb slow: --state and --focus have no effect here\n", sdb!("slow", "--state", "gc", "--focus", "x", RING).err
    assert_equal "sdb threads: --only-app has no effect here\n", sdb!("threads", "--only-app", RING).err
  end
end
