# frozen_string_literal: true

# Writes the pages that the browser tests open, and beside each the columns it was made from:
#
#   ruby fixture.rb DIRECTORY
#
# Needs neither the recorder nor the reader: the columns are made up here, the same on every run.

require "json"
require_relative "../../lib/sdb/report/flamegraph"
require_relative "span_fixture"

module BrowserFixture
  FACTS = {
    process: "puma 6.4.2 (tcp://0.0.0.0:9292) [storefront] · pid 4321", ruby: "3.3.8 +YJIT", interval_ns: 1_000_000,
    duration_ns: 60_000_000_000, start: "2024-05-01T14:05:10Z", threads: 6, samples: 301_544, scans: 120_034,
    states: "exact", ticks: 59_874, late_ticks: 212, total_ns: 96_000_000_000, unnamed_ns: 11_000_000,
    lost: { torn: 31, torn_top: 12, gc: 84, unresolved: 0, queue_full: 0, ring: 0, gap_ns: 12_400_000, truncated: 0,
            threads: 0 },
    cost: { cpu_ns: 640_000_000, gvl_ns: 9_000_000, rss_bytes: 3_400_000 }, warnings: []
  }.freeze

  # Collects functions, stacks and cells by name.
  class Builder
    def initialize(threads)
      @threads = threads
      @strings = {}
      @funcs = {}
      @stacks = {}
      @cells = {}
    end

    def string(text)
      @strings[text] ||= @strings.size
    end

    def func(name, path, line, category)
      @funcs[[name, path, line, category]] ||= @funcs.size
    end

    def stack(parent, func)
      @stacks[[parent, func]] ||= @stacks.size
    end

    # times: ns per metric but wall, which is their sum without cpu when not given.
    def add(stack, thread, **times)
      times[:wall] ||= times.except(:cpu).sum { |_, ns| ns } + (times[:gvl_wait] || times[:blocked] ? 0 : times[:cpu].to_i)
      cell = (@cells[[stack, thread]] ||= Hash.new(0))
      times.each { |metric, ns| cell[metric] += ns }
    end

    def data(facts = FACTS)
      names = @funcs.keys
      Sdb::Report::FlameData.new(
        funcs: { name: names.map { |f| string(f[0]) }, path: names.map { |f| f[1] && string(f[1]) },
                 line: names.map { |f| f[2] }, category: names.map { |f| f[3] } },
        stacks: { parent: @stacks.keys.map(&:first), func: @stacks.keys.map(&:last) },
        cells: { stack: @cells.keys.map(&:first), thread: @cells.keys.map(&:last) }.merge(
          Sdb::Report::FlameData::METRICS.to_h { |metric| [metric, @cells.values.map { |c| c[metric] }] }
        ),
        strings: @strings.keys, threads: @threads, facts: facts
      )
    end
  end

  module_function

  # Seven functions, two threads, recursion, every metric: small enough to check by hand.
  def small
    b = Builder.new([{ pid: 7, tid: 70, name: "main" }, { pid: 7, tid: 71, name: nil }])
    main = b.func("<main>", "/app/run.rb", 1, :app)
    work = b.func("Work#call", "/app/work.rb", 3, :app)
    walk = b.func("Tree#walk", "/app/tree.rb", 8, :app)
    each = b.func("Array#each", nil, 0, :c)
    json = b.func("JSON.generate", "/usr/lib/ruby/3.3.0/json/common.rb", 301, :stdlib)
    exec = b.func("Sequel::Database#execute", "/gems/sequel-5.80.0/lib/sequel/database.rb", 40, :gem)
    rest = b.func("Kernel#sleep", nil, 0, :c)
    root = b.stack(-1, main)
    at_work = b.stack(root, work)
    at_each = b.stack(at_work, each)
    first = b.stack(at_each, walk)
    second = b.stack(b.stack(first, each), walk)
    as_json = b.stack(at_work, json)
    in_gem = b.stack(at_work, exec)
    asleep = b.stack(in_gem, rest)
    b.add(root, 0, cpu: 1_000_000)
    b.add(first, 0, cpu: 30_000_000, gc: 4_000_000, wall: 34_000_000)
    b.add(second, 0, cpu: 50_000_000)
    b.add(as_json, 0, cpu: 20_000_000, gvl_wait: 6_000_000, wall: 26_000_000)
    b.add(in_gem, 1, cpu: 5_000_000, gvl_wait: 10_000_000, wall: 15_000_000)
    b.add(asleep, 1, blocked: 74_000_000)
    b.data
  end

  def empty
    Builder.new([]).data(FACTS.merge(samples: 0, threads: 0))
  end

  # Names that try to get out of where they belong.
  def hostile
    b = Builder.new([{ pid: 7, tid: 1, name: "</script><script>window.pwned = 1</script>" },
                     { pid: 7, tid: 2, name: "\u202Eniam" }])
    names = ["</script><script>window.pwned = 1</script>", "<img src=x onerror=window.pwned=1>",
             "safe\u202Edne#llac", "zero\u200Bwidth\u0000null\u001B[31m", "\"'&lt;`${window.pwned=1}`", "N" * 10_240,
             "Ünïcödé::Größe#größer", "日本語::クラス#メソッド", "bad\xFFbytes".b, "__proto__", "constructor", "🦀#emoji"]
    parent = -1
    names.each_with_index do |name, i|
      parent = b.stack(parent, b.func(name, i.even? ? "/app/</style><b>#{i}.rb" : nil, i, %i[app gem stdlib c eval][i % 5]))
      b.add(parent, i % 2, cpu: 10_000_000 * (i + 1))
    end
    facts = FACTS.merge(process: "</title><script>window.pwned = 1</script>", warnings: ["<b>\u202Ewarning"],
                        lost: FACTS[:lost].merge(torn: 40_000, gap_ns: 9_000_000_000))
    b.data(facts)
  end

  # What a Rails application looks like: deep, much of it not its own code.
  def rails
    b = Builder.new((1..5).map { |i| { pid: 4321, tid: 4400 + i, name: "puma srv tp 00#{i}" } } + [{ pid: 4321, tid: 4321, name: "main" }])
    Rails.new(b).fill
    b.data
  end

  # `count` stacks in trees up to 60 deep over 20 000 functions.
  def large(count)
    random = Random.new(1)
    b = Builder.new((0...25).map { |i| { pid: 100 + (i / 5), tid: 1000 + i, name: "worker #{i}" } })
    funcs = Array.new(20_000) do |i|
      b.func("Module#{i % 97}::Component#{i % 1013}::Handler#method_#{i}", "/app/lib/component_#{i % 1013}.rb", i % 400,
             %i[app gem gem gem stdlib c][i % 6])
    end
    stacks = []
    depths = []
    until stacks.size == count
      up = stacks.size < 50 || depths[near = stacks.size - 1 - random.rand([stacks.size, 400].min)] >= 60 ? nil : near
      id = b.stack(up ? stacks[up] : -1, funcs[(random.rand**3 * funcs.size).to_i])
      next unless id == stacks.size

      stacks << id
      depths << (up ? depths[up] + 1 : 1)
      cpu = random.rand(5_000_000)
      b.add(id, random.rand(25), cpu: cpu, gvl_wait: random.rand(800_000), blocked: random.rand(3_000_000),
                                 gc: cpu / 20, wall: cpu + random.rand(4_000_000))
    end
    b.data(FACTS.merge(threads: 25))
  end

  # A made-up application, told as the paths that its requests take.
  class Rails
    FRAMEWORK = [
      ["Puma::ThreadPool#spawn_thread", "puma-6.4.2/lib/puma/thread_pool.rb", 107], ["Puma::Server#process_client", "puma-6.4.2/lib/puma/server.rb", 432],
      ["Puma::Request#handle_request", "puma-6.4.2/lib/puma/request.rb", 50], ["Rails::Engine#call", "railties-7.2.1/lib/rails/engine.rb", 530],
      ["Rack::Sendfile#call", "rack-3.1.7/lib/rack/sendfile.rb", 113], ["ActionDispatch::Executor#call", "actionpack-7.2.1/lib/action_dispatch/middleware/executor.rb", 14],
      ["Rack::Runtime#call", "rack-3.1.7/lib/rack/runtime.rb", 22], ["Rails::Rack::Logger#call_app", "railties-7.2.1/lib/rails/rack/logger.rb", 37],
      ["ActionDispatch::Cookies#call", "actionpack-7.2.1/lib/action_dispatch/middleware/cookies.rb", 704],
      ["Rack::Session::Abstract::Persisted#context", "rack-session-2.0.0/lib/rack/session/abstract/id.rb", 272],
      ["ActionDispatch::Routing::RouteSet#call", "actionpack-7.2.1/lib/action_dispatch/routing/route_set.rb", 880],
      ["AbstractController::Base#process", "actionpack-7.2.1/lib/abstract_controller/base.rb", 160],
      ["ActiveSupport::Callbacks#run_callbacks", "activesupport-7.2.1/lib/active_support/callbacks.rb", 109]
    ].freeze
    SQL = [["ActiveRecord::Relation#load", "activerecord-7.2.1/lib/active_record/relation.rb", 1200], ["ActiveRecord::ConnectionAdapters::AbstractAdapter#log", "activerecord-7.2.1/lib/active_record/connection_adapters/abstract_adapter.rb", 1150],
           ["ActiveSupport::Notifications::Instrumenter#instrument", "activesupport-7.2.1/lib/active_support/notifications/instrumenter.rb", 58]].freeze
    VIEW = [["ActionView::Renderer#render", "actionview-7.2.1/lib/action_view/renderer/renderer.rb", 25], ["ActionView::TemplateRenderer#render_template", "actionview-7.2.1/lib/action_view/renderer/template_renderer.rb", 65],
            ["ActionView::Template#render", "actionview-7.2.1/lib/action_view/template.rb", 260]].freeze

    def initialize(builder)
      @b = builder
      @random = Random.new(7)
    end

    def fill
      5.times { |thread| serve(thread) }
      main = down(-1, ["<main>", "/srv/shop/bin/puma", 1, :app], ["Puma::CLI#run", "/gems/puma-6.4.2/lib/puma/cli.rb", 75, :gem],
                  ["Thread#join", nil, 0, :c])
      spend(main, 5, blocked: 30_000)
    end

    private

    def serve(thread)
      call = FRAMEWORK.inject(-1) do |up, frame|
        spend(up, thread, cpu: 18 + @random.rand(30)) if up >= 0
        at(up, gem(frame))
      end
      wait = down(at(-1, gem(FRAMEWORK[0])), ["Thread::ConditionVariable#wait", nil, 0, :c])
      spend(wait, thread, blocked: 7_000 + @random.rand(2_000))
      orders(call, thread)
      products(call, thread)
      checkout(call, thread)
    end

    def orders(call, thread)
      action = at(call, ["OrdersController#index", "/srv/shop/app/controllers/orders_controller.rb", 12, :app])
      sql(at(action, ["Order.recent", "/srv/shop/app/models/order.rb", 44, :app]), thread, 900, 260)
      total = at(at(action, ["Array#each", nil, 0, :c]), ["block in OrdersController#index", "/srv/shop/app/controllers/orders_controller.rb", 15, :app])
      sum = at(at(at(total, ["Order#total", "/srv/shop/app/models/order.rb", 61, :app]), ["Enumerable#sum", nil, 0, :c]),
               ["block in Order#total", "/srv/shop/app/models/order.rb", 62, :app])
      spend(sum, thread, cpu: 640, gvl_wait: 90)
      spend(at(at(sum, ["LineItem#price_with_tax", "/srv/shop/app/models/line_item.rb", 18, :app]), ["BigDecimal#*", nil, 0, :c]), thread, cpu: 410, gc: 60)
      sql(at(total, ["Order#customer", "/srv/shop/app/models/order.rb", 9, :app]), thread, 700, 380)
      render(action, thread, "app/views/orders/index.html.erb", 900)
    end

    def products(call, thread)
      action = at(call, ["ProductsController#show", "/srv/shop/app/controllers/products_controller.rb", 8, :app])
      sql(at(action, ["Product.find_by_slug", "/srv/shop/app/models/product.rb", 20, :app]), thread, 310, 120)
      similar = at(action, ["Recommender#similar", "/srv/shop/app/services/recommender.rb", 27, :app])
      score = at(at(similar, ["Array#sort_by", nil, 0, :c]), ["block in Recommender#similar", "/srv/shop/app/services/recommender.rb", 31, :app])
      spend(at(score, ["Recommender#cosine", "/srv/shop/app/services/recommender.rb", 48, :app]), thread, cpu: 2_300, gvl_wait: 500, gc: 120)
      spend(at(score, ["Math.sqrt", nil, 0, :c]), thread, cpu: 240)
      render(action, thread, "app/views/products/show.html.erb", 620)
      spend(
        down(action, ["Rails.cache.fetch", "/gems/activesupport-7.2.1/lib/active_support/cache.rb", 400, :gem],
             ["Redis::Client#call", "/gems/redis-client-0.22.2/lib/redis_client.rb", 270, :gem], ["IO#wait_readable", nil, 0, :c]), thread, blocked: 340
      )
    end

    def checkout(call, thread)
      action = at(call, ["CheckoutsController#create", "/srv/shop/app/controllers/checkouts_controller.rb", 22, :app])
      net = down(action, ["PaymentGateway#charge", "/srv/shop/app/services/payment_gateway.rb", 33, :app],
                 ["Net::HTTP#request", "/usr/lib/ruby/3.3.0/net/http.rb", 2350, :stdlib], ["Net::BufferedIO#rbuf_fill", "/usr/lib/ruby/3.3.0/net/protocol.rb", 200, :stdlib])
      spend(at(net, ["IO#wait_readable", nil, 0, :c]), thread, blocked: 2_100)
      spend(down(action, ["JSON.generate", "/usr/lib/ruby/3.3.0/json/common.rb", 301, :stdlib], ["JSON::Ext::Generator::State#generate", nil, 0, :c]), thread,
            cpu: 180)
      sql(at(action, ["Inventory#reserve!", "/srv/shop/app/models/inventory.rb", 14, :app]), thread, 420, 510)
    end

    def sql(from, thread, cpu, wait)
      to = SQL.inject(from) { |up, frame| at(up, gem(frame)) }
      spend(to, thread, cpu: cpu / 4)
      spend(down(to, ["SQLite3::Statement#step", nil, 0, :c]), thread, cpu: cpu / 2, blocked: wait)
      spend(
        down(from, ["ActiveRecord::Result#each", "/gems/activerecord-7.2.1/lib/active_record/result.rb", 90, :gem],
             ["ActiveModel::AttributeSet::Builder#build_from_database", "/gems/activemodel-7.2.1/lib/active_model/attribute_set/builder.rb", 20, :gem]), thread, cpu: cpu / 4, gc: cpu / 30
      )
    end

    def render(from, thread, template, cpu)
      view = VIEW.inject(from) { |up, frame| at(up, gem(frame)) }
      erb = at(view, ["_#{template.tr("/.", "__")}__4711", "/srv/shop/#{template}", 1, :app])
      spend(erb, thread, cpu: cpu / 3, gvl_wait: cpu / 8)
      spend(
        down(erb, ["PricesHelper#money", "/srv/shop/app/helpers/prices_helper.rb", 4, :app],
             ["ActionView::Helpers::NumberHelper#number_to_currency", "/gems/actionview-7.2.1/lib/action_view/helpers/number_helper.rb", 60, :gem]), thread, cpu: cpu / 2
      )
      spend(down(erb, ["method_missing", "(eval at /gems/haml-6.3.0/lib/haml/template.rb:30)", 3, :eval]), thread, cpu: cpu / 9)
    end

    def gem((name, path, line))
      [name, "/gems/#{path}", line, :gem]
    end

    def at(up, frame)
      @b.stack(up, @b.func(*frame))
    end

    def down(from, *frames)
      frames.inject(from) { |up, frame| at(up, frame) }
    end

    # In ms, unlike Builder#add.
    def spend(stack, thread, **times)
      factor = 800_000 + @random.rand(400_000)
      times = times.transform_values { |ms| ms * factor }
      wall = times.values_at(:cpu, :gvl_wait, :blocked, :gc).compact.sum
      @b.add(stack, thread, **times, wall: wall)
    end
  end

  def write(directory)
    pages = { "small" => small, "empty" => empty, "hostile" => hostile, "rails" => rails, "large" => large(200_000) }
    pages.each do |name, data|
      title = { "hostile" => "</title><script>window.pwned = 1</script>", "rails" => "puma: storefront [4321]" }.fetch(name, name)
      File.open(File.join(directory, "#{name}.html"), "w") { |io| Sdb::Report::FlameGraph.render(data, io, title: title) }
      next if name == "hostile" # its bytes are no JSON

      File.write(File.join(directory, "#{name}.json"), JSON.generate(
                                                         strings: data.strings, funcs: data.funcs, stacks: data.stacks, cells: data.cells, threads: data.threads
                                                       ))
    end
    SpanFixture.write(directory)
  end
end

BrowserFixture.write(ARGV.fetch(0)) if $PROGRAM_NAME == __FILE__
