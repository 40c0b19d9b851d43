# frozen_string_literal: true

require "test_helper"
require "support/app_server"

# A real Rails app under Puma with the gem in its bundle and SDB=1 in the environment.
class TestRails < Minitest::Test
  include AppServer

  SHOP = File.join(APPS, "shop")

  def shop(*arguments, way: :bundle, env: {}, mode: "production")
    @port = free_port
    env = { "RAILS_ENV" => mode, "SHOP_DATABASE" => File.join(@work, "shop.sqlite3"), "SHOP_LOG" => File.join(@work, "rails.log") }.merge(env)
    start(*bundle("puma", "-b", "tcp://127.0.0.1:#{@port}", "-t", "5:5", *arguments, File.join(SHOP, "config.ru")), port: @port, way: way, env: env)
  end

  def rails_log = File.read(File.join(@work, "rails.log"))

  def test_requests_are_named_by_controller_and_action
    pid = shop
    get!(@port, "/products")
    get!(@port, "/products/7", "X-Request-Id" => "show-7")
    assert_equal "404", get(@port, "/products/99").code
    assert_equal "500", get(@port, "/fail").code
    assert_equal "404", get(@port, "/nowhere/5").code
    stop(pid)

    found = spans.select { |span| span.kind == "request" }.sort_by(&:start_ns)
    assert_equal [["ProductsController#index", 200], ["ProductsController#show", 200], ["ProductsController#show", 404],
                  ["ProductsController#fail", 500], ["GET /nowhere/:id", 404]], found.map { |span| [span.name, span.status] }
    assert_equal "show-7", found[1].id
    assert_equal "/products/7", found[1].tags["path"]
    assert_equal [0], found.map(&:parent).uniq
    assert_empty found.select(&:open)
  end

  def test_what_rails_keeps_out_of_its_log_is_not_in_this_one
    pid = shop
    get!(@port, "/tagged/not-yours-9?more=nor-this")
    stop(pid)
    span = spans.find { |found| found.name == "ProductsController#tagged" }
    assert_equal({ "token" => "[FILTERED]", "customer" => "7", "path" => "/tagged/:id" }, span.tags)
    bytes = ring_files.map { |path| File.binread(path) }.join
    %w[not-yours-9 nor-this].each { |secret| refute_includes bytes, secret }
  end

  def test_the_id_in_the_log_of_rails_is_the_one_that_sdb_finds
    pid = shop
    id = get!(@port, "/id").body
    assert_equal "mine-1", get!(@port, "/id", "X-Request-Id" => "mine-1").body
    response = get!(@port, "/products/3")
    stop(pid)
    assert_equal "ProductsController#request_id", sdb_json("request", id).fetch("name")
    assert_equal "ProductsController#request_id", sdb_json("request", "mine-1").fetch("name")
    assert_equal "ProductsController#show", sdb_json("request", response["X-Request-Id"]).fetch("name")
    assert rails_log.include?("[#{id}] Completed 200 OK"), rails_log.lines.last(5).join
  end

  def test_rubyopt_alone_does_the_same
    pid = shop(way: :option)
    get!(@port, "/products/2", "X-Request-Id" => "two")
    stop(pid)
    assert_equal [["two", "ProductsController#show"]], spans.select { |s| s.kind == "request" }.map { |s| [s.id, s.name] }
  end

  def test_without_sdb_in_the_environment_nothing_is_recorded_or_patched
    pid = shop(way: nil)
    get!(@port, "/products/2")
    stop(pid)
    assert_empty ring_files
  end

  def test_slow_names_the_planted_method_and_who_held_the_gvl
    pid = shop
    get!(@port, "/products")
    busy = Thread.new { get!(@port, "/busy?ms=700", "X-Request-Id" => "busy-1") }
    sleep 0.1
    get!(@port, "/slow", "X-Request-Id" => "slow-1")
    busy.join
    20.times { |n| get!(@port, "/products/#{n + 1}") }
    stop(pid)

    slow = sdb_json("slow", "--endpoint", "SlowController#show").fetch("spans")
    assert_equal ["slow-1"], slow.map { |span| span["id"] }
    assert_equal %w[busy-1 slow-1], sdb_json("slow", "--limit", 2).fetch("spans").map { |s| s["id"] }.sort
    request = sdb_json("request", "slow-1")
    assert_operator request["wall_ns"], :>=, 180_000_000
    assert_equal request["wall_ns"], request["runs"].sum { |run| run["ns"] }
    in_method = request["runs"].select { |run| run["frames"].any? { |frame| frame["name"] == "Stock#count_everything" } }
    assert_operator in_method.sum { |run| run["ns"] }, :>=, 175_000_000
    frame = in_method.first["frames"].find { |f| f["name"] == "Stock#count_everything" }
    assert_equal [File.join(SHOP, "app/models/stock.rb"), 6], frame.values_at("path", "line")
    return if RUBY_VERSION < "3.2"

    assert_operator request["gvl_wait_ns"], :>, 50_000_000
    assert_equal "BusyController#show", slow.first["blame"].first["span_name"]
    assert_includes slow.first["blame"].first["frames"].map { |f| f["name"] }, "BusyController#spin"
  end

  def test_jobs_and_asked_for_child_spans_are_spans
    pid = shop(env: { "SHOP_SPANS" => "sql,cache" })
    get!(@port, "/products")
    job_id = get!(@port, "/later").body
    wait_until("the job is done") { rails_log.include?("Performed ReorderJob") }
    stop(pid)
    merged = profile
    job = spans(merged).find { |span| span.kind == "job" }
    assert_equal ["ReorderJob", job_id, "reorders", 0], [job.name, job.id, job.tags["queue"], job.parent]
    assert_operator job.wall_ns, :>=, 50_000_000
    index = spans(merged).find { |span| span.name == "ProductsController#index" }
    children = spans(merged).select { |span| span.parent.positive? && span.start_ns.between?(index.start_ns, index.end_ns) }
    assert_equal ["sql"], children.select { |span| span.name == "Product Pluck" }.map(&:kind)
    assert_includes children.select { |span| span.kind == "cache" }.map(&:name), "cache_write"
  end

  def test_the_trace_of_opentelemetry_is_found
    pid = shop(env: { "SHOP_OTEL" => "1", "OTEL_TRACES_EXPORTER" => "none" })
    get!(@port, "/products/1")
    stop(pid)
    span = spans.find { |s| s.kind == "request" }
    assert_match(/\A\h{32}\z/, span.trace_id)
    assert_match(/\A\h{16}\z/, span.tags["otel_span"])
    assert_equal [span.id], spans(trace: span.trace_id).map(&:id)
  end

  def test_reloading_in_development_goes_on
    root = File.join(@work, "shop")
    FileUtils.cp_r(SHOP, root)
    pid = shop(mode: "development", env: { "SHOP_ROOT" => root })
    assert_equal "counted", get!(@port, "/slow").body
    file = File.join(root, "app/models/stock.rb")
    File.write(file, File.read(file).sub(":counted", ":counted_again").sub("10.times", "2.times"))
    assert_equal "counted_again", get!(@port, "/slow").body
    stop(pid)
    assert_equal ["SlowController#show"] * 2, spans.select { |s| s.kind == "request" }.map(&:name)
  end

  def test_a_preloaded_cluster_has_requests_of_each_worker
    pid = shop("-w", "2", "--preload")
    pids = {}
    wait_until("two workers answer") do
      Array.new(6) { Thread.new { get!(@port, "/busy?ms=30") } }.each(&:join)
      pids = spans.select { |span| span.kind == "request" }.to_h { |span| [span.pid, true] }
      pids.size == 2
    end
    stop(pid)
    assert_equal ["BusyController#show"], spans.select { |s| s.kind == "request" }.map(&:name).uniq
    assert_equal %w[0 1], working_rings.map { |ring| ring.tags["worker"] }.sort
  end

  def test_the_rake_tasks_are_there_and_ask_the_logs
    pid = shop
    get!(@port, "/slow", "X-Request-Id" => "slow-1")
    stop(pid)
    out = rake("sdb:slow[--json]")
    assert_equal ["slow-1"], JSON.parse(out[/^\{.*/]).fetch("spans").map { |span| span["id"] }
    assert_includes rake("sdb:request[slow-1]"), "SlowController#show"
    assert_includes rake("sdb:export[collapsed]"), "Stock#count_everything"
    rake("sdb:flamegraph[-o #{File.join(@work, "flame.html")}]")
    assert File.read(File.join(@work, "flame.html"), encoding: "UTF-8").start_with?("<!DOCTYPE html>")
    assert_includes rake("-T", "sdb"), "rake sdb:request[id]"
  end

  def test_a_rake_task_is_a_span
    rake("greet", way: :bundle)
    tasks = spans.select { |span| span.kind == "task" }
    assert_includes tasks.map(&:name), "rake greet"
  end

  def rake(*arguments, way: nil)
    env = environment(way).merge("RAILS_ENV" => "production", "SHOP_DATABASE" => File.join(@work, "shop.sqlite3"))
    out, err, status = Open3.capture3(env, *bundle("rake", *arguments), chdir: SHOP)
    assert_predicate status, :success?, "#{out}#{err}"
    out
  end
end
