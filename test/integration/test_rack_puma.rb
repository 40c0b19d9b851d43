# frozen_string_literal: true

require "test_helper"
require "support/app_server"

# An app that a config.ru loads, under Puma, recorded by RUBYOPT=-rsdb/auto alone.
class TestRackPuma < Minitest::Test
  include AppServer

  def puma(*arguments, **options)
    @port = free_port
    start(*bundle("puma", "-b", "tcp://127.0.0.1:#{@port}", *arguments, "hello.ru"), port: @port, **options)
  end

  def test_every_request_is_a_span_with_its_name_id_status_and_time
    pid = puma("-t", "5:5")
    get!(@port, "/items/17", "X-Request-Id" => "abc-1")
    get!(@port, "/items/18", "X-Request-Id" => "with spaces;and=more!")
    get!(@port, "/sleep")
    get(@port, "/missing")
    get(@port, "/raise")
    stop(pid)

    spans = self.spans.sort_by(&:start_ns)
    assert_equal ["GET /items/:id", "GET /items/:id", "GET /sleep", "GET /missing", "GET /raise"], spans.map(&:name)
    assert_equal [200, 200, 200, 404, 500], spans.map(&:status)
    assert_equal %w[abc-1 withspacesandmore], spans.first(2).map(&:id)
    assert_match(/\A\h{16}\z/, spans[2].id)
    assert_equal ["/items/17", "ArgumentError"], [spans[0].tags["path"], spans[4].tags["error"]]
    assert_equal ["request"], spans.map(&:kind).uniq
    assert_in_delta 125, spans[2].wall_ns / 1e6, 30
    assert_operator spans[2].blocked_ns, :>=, 110_000_000
    assert_empty spans.select(&:open)
    assert_equal [0], spans.map(&:parent).uniq
  end

  def test_a_span_lasts_until_its_body_is_sent
    pid = puma("-t", "1:1")
    get!(@port, "/stream", "X-Request-Id" => "s-1")
    begin
      get(@port, "/leak", "X-Request-Id" => "l-1")
    rescue IOError, SystemCallError, Net::ReadTimeout
      nil # the server gives up in the middle
    end
    get!(@port, "/ok", "X-Request-Id" => "o-1")
    stop(pid)
    by_id = spans.to_h { |span| [span.id, span] }
    assert_operator by_id.fetch("s-1").wall_ns, :>=, 150_000_000
    assert_operator by_id.fetch("o-1").wall_ns, :<, 100_000_000
    assert_equal [0, 0, 0], by_id.values.map(&:parent)
    assert_empty by_id.values.select(&:open)
  end

  def test_the_trace_of_a_traceparent_is_found
    pid = puma("-t", "1:1")
    get!(@port, "/ok", "traceparent" => "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    get!(@port, "/ok", "traceparent" => "00-00000000000000000000000000000000-b7ad6b7169203331-01")
    stop(pid)
    found = spans(trace: "0af7651916cd43dd8448eb211c80319c")
    assert_equal ["b7ad6b7169203331"], found.map { |span| span.tags["parent_span"] }
  end

  def test_slow_names_the_slow_one_and_request_shows_what_it_did
    pid = puma("-t", "2:2")
    threads = Array.new(2) { |n| Thread.new { 30.times { |i| get!(@port, "/ok", "X-Request-Id" => "ok-#{n}-#{i}") } } }
    get!(@port, "/sleep", "X-Request-Id" => "slow-1")
    threads.each(&:join)
    stop(pid)

    slow = sdb_json("slow", "--limit", 3).fetch("spans")
    assert_equal ["slow-1", "GET /sleep", 200], slow.first.values_at("id", "name", "status")
    request = sdb_json("request", "slow-1")
    assert_equal request.fetch("wall_ns"), request.fetch("runs").sum { |run| run.fetch("ns") }
    longest = request.fetch("runs").max_by { |run| run.fetch("ns") }
    assert_equal "blocked", longest.fetch("state")
    names = longest.fetch("frames").map { |frame| frame["name"] }
    assert_includes names, "Kernel#sleep"
    frame = longest.fetch("frames").find { |f| f["name"] == "Hello#call" }
    assert_equal ["hello.ru", File.readlines(File.join(APPS, "hello.ru")).index { |l| l.include?("sleep(0.12)") } + 1],
                 [File.basename(frame["path"]), frame["line"]]
    assert_in_delta 120_000_000, longest.fetch("ns"), 20_000_000
    out, err, status = sdb("request", "slow-1", @rings)
    assert_predicate status, :success?, err
    assert_match(%r{GET /sleep.*slow-1}m, out)
  end

  # C14
  def test_a_request_that_mostly_waits_adds_up_to_its_duration
    pid = puma("-t", "2:2")
    before = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    get!(@port, "/wait", "X-Request-Id" => "w-1")
    took = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - before
    stop(pid)
    request = sdb_json("request", "w-1")
    assert_operator took, :>=, request["wall_ns"]
    assert_operator request["wall_ns"], :>=, 2_000_000_000
    sums = request["runs"].group_by { |run| run["state"] }.transform_values { |runs| runs.sum { |run| run["ns"] } }
    assert_equal request["wall_ns"], sums.values.sum
    own = %w[running_ns gvl_wait_ns blocked_ns gc_ns].sum { |key| request[key] }
    assert_in_delta request["wall_ns"], own + sums.fetch("unknown", 0), 2_000_000
    asleep = request["runs"].select { |run| run["frames"].last&.fetch("name") == "Kernel#sleep" && run["state"] == "blocked" }
    assert_in_delta 2.0, asleep.sum { |run| run["ns"] } / 1e9, 0.3
  end

  # C16
  def test_each_worker_of_a_preloaded_cluster_has_a_log_through_a_restart
    pid = puma("-t", "5:5", "-w", "2", "--preload")
    before = see_workers(2)
    Process.kill(:USR2, pid)
    after = wait_until("both workers are new") do
      seen = see_workers(2)
      seen if (seen & before).empty?
    end
    stop(pid)
    merged = profile
    assert_equal (before + after).sort, spans(merged).map(&:pid).uniq.sort
    workers = working_rings(merged)
    assert_equal %w[0 0 1 1], workers.map { |ring| ring.tags["worker"] }.sort
    assert(workers.all? { |ring| ring.text["parent_ring"].to_s.include?("/#{pid}-") })
    ones = workers.select { |ring| ring.tags["worker"] == "1" }.map(&:pid)
    assert_equal ones.sort, spans(merged, tag: "worker=1").map(&:pid).uniq.sort
    assert_equal (before + after).sort, (merged.threads.threads.map(&:pid).uniq - [pid]).sort
  end

  # C16
  def test_a_phased_restart_replaces_the_workers_and_their_logs
    pid = puma("-t", "5:5", "-w", "2", "-C", "phased.rb")
    before = see_workers(2)
    Process.kill(:USR1, pid)
    after = wait_until("both workers are new") do
      seen = see_workers(2)
      seen if (seen & before).empty?
    end
    stop(pid)
    assert_equal (before + after).sort, spans.map(&:pid).uniq.sort
    labels = working_rings.group_by { |ring| ring.tags["worker"] }
    assert_equal({ "0" => 2, "1" => 2 }, labels.transform_values(&:size))
    assert_empty spans.select(&:open)
  end

  def test_workers_forked_by_worker_zero_have_their_own_labels
    pid = puma("-t", "2:2", "-w", "2", "--fork-worker")
    before = see_workers(2)
    Process.kill(:URG, pid) # worker 0 forks the others anew
    wait_until("worker 1 is new") { (see_workers(2) - before).any? }
    stop(pid)
    rings = working_rings
    zero, first, second = rings.sort_by { |ring| [ring.tags["worker"], ring.start_realtime_ns] }
    assert_equal %w[0 1 1], [zero, first, second].map { |ring| ring.tags["worker"] }
    assert_equal zero.path, second.text["parent_ring"]
    # worker 0 forks the first one, too: at once, mostly before it has a ring of its own
    assert_includes [zero.path, zero.text["parent_ring"]], first.text["parent_ring"]
  end

  def test_the_app_answers_as_without_sdb
    with = answers(way: :option)
    assert_equal answers(way: nil), with
    refute_empty ring_files
  end

  def answers(way:)
    pid = puma("-t", "2:2", way: way)
    paths = %w[/ok /items/1 /missing /raise /stream /other]
    all = paths.to_h do |path|
      [path, get(@port, path).then do |r|
        [r.code, r.body.lines.first(1), r.each_header.to_h.except("date", ("content-length" if r.code == "500"))]
      end]
    end
    stop(pid)
    all
  end

  # Asks until so many workers have answered. @return their pids
  def see_workers(count)
    seen = {}
    wait_until("#{count} workers answer") do
      Array.new(8) { Thread.new { get!(@port, "/pid").body.to_i } }.each { |thread| seen[thread.value] = true }
      seen.size >= count
    end
    seen.keys
  end
end
