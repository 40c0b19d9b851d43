# frozen_string_literal: true

require "json"
require_relative "../../lib/sdb/report/stack_chart"

# Requests as `sdb request ID --json` tells them, made up, for the tests of the stack chart.
module SpanFixture
  MS = 1_000_000
  BASE = [
    ["Puma::Server#process_client", "/gems/puma-6.4.2/lib/puma/server.rb", 432], ["Rails::Engine#call", "/gems/railties-7.2.1/lib/rails/engine.rb", 530],
    ["ActionDispatch::Routing::RouteSet#call", "/gems/actionpack-7.2.1/lib/action_dispatch/routing/route_set.rb", 880],
    ["AbstractController::Base#process", "/gems/actionpack-7.2.1/lib/abstract_controller/base.rb", 160],
    ["OrdersController#index", "/srv/shop/app/controllers/orders_controller.rb", 12]
  ].freeze
  ORDERS = ["Order.recent", "/srv/shop/app/models/order.rb", 44].freeze
  LOAD = ["ActiveRecord::Relation#load", "/gems/activerecord-7.2.1/lib/active_record/relation.rb", 1200].freeze
  STEP = ["SQLite3::Statement#step", "", 0].freeze
  EACH = ["Array#each", "", 0].freeze
  BLOCK = ["block in OrdersController#index", "/srv/shop/app/controllers/orders_controller.rb", 15].freeze
  TOTAL = ["Order#total", "/srv/shop/app/models/order.rb", 61].freeze
  PRICE = ["LineItem#price_with_tax", "/srv/shop/app/models/line_item.rb", 18].freeze
  RENDER = ["ActionView::Template#render", "/gems/actionview-7.2.1/lib/action_view/template.rb", 260].freeze
  VIEW = ["_app_views_orders_index_html_erb__4711", "/srv/shop/app/views/orders/index.html.erb", 1].freeze
  REPORT = { span_name: "ReportsController#yearly", thread: "puma srv tp 003", ns: 0,
             frames: [{ name: "ReportsController#yearly", path: "/srv/shop/app/controllers/reports_controller.rb", line: 9 },
                      { name: "Report#pivot", path: "/srv/shop/app/models/report.rb", line: 80 }, { name: "Array#sort_by", path: "", line: 0 }] }.freeze
  JOB = { span_name: nil, thread: "cable worker", ns: 0,
          frames: [{ name: "ActionCable::Server::Worker#work", path: "/gems/actioncable-7.2.1/worker.rb", line: 70 }] }.freeze

  # Collects runs one after the other.
  class Runs
    attr_reader :list

    def initialize(start)
      @at = start
      @list = []
    end

    def add(milliseconds, state, frames, holder = nil)
      ns = (milliseconds * MS).round
      @list << { at_ns: @at, ns: ns, state: state, frames: frames.map { |name, path, line| { name: name, path: path, line: line } }, holder: holder }
      @at += ns
    end
  end

  module_function

  def rails(repeat = 1)
    start = 41_000 * MS
    runs = Runs.new(start)
    runs.add(1.2, "gvl_wait", BASE.first(1), JOB)
    runs.add(2.3, "running", BASE.first(4))
    repeat.times do |i|
      base = BASE
      runs.add(1.1, "running", base + [ORDERS, LOAD])
      runs.add(34, "blocked", base + [ORDERS, LOAD, STEP])
      runs.add(3.4, "running", base + [ORDERS, LOAD])
      8.times do |n|
        runs.add(2.2 + n * 0.4, "running", base + [EACH, BLOCK, TOTAL])
        runs.add(1.7, "running", base + [EACH, BLOCK, TOTAL, PRICE])
        runs.add(n == 3 ? 120 : 0.9, "gvl_wait", base + [EACH, BLOCK, TOTAL, PRICE], n == 3 ? REPORT : JOB) if n.odd?
        runs.add(1.6, "running", base + [EACH, [BLOCK[0], BLOCK[1], 16], LOAD])
        runs.add(4 + n % 3, "blocked", base + [EACH, BLOCK, LOAD, STEP])
        runs.add(11, "gc", base + [EACH, BLOCK, TOTAL]) if n == 5
      end
      runs.add(18.5, "running", base + [RENDER, VIEW])
      runs.add(6, "running", base + [RENDER, VIEW, ["PricesHelper#money", "/srv/shop/app/helpers/prices_helper.rb", 4]])
      runs.add(9.5, "running", base + [RENDER, VIEW])
      runs.add(0.4, "unknown", []) if i.zero?
    end
    runs.add(1.3, "running", BASE.first(3))
    span(runs.list, start)
  end

  def span(runs, start)
    sum = ->(*states) { runs.select { |run| states.include?(run[:state]) }.sum { |run| run[:ns] } }
    { schema: 1, id: "5f3c9a2e-77aa-4c1b-9d0e-1f2a3b4c5d6e", kind: "request", name: "OrdersController#index", start: "2024-05-01T14:05:51.000120Z",
      start_ns: start, wall_ns: runs.sum { |run| run[:ns] }, cpu_ns: sum.call("running"), running_ns: sum.call("running"), gvl_wait_ns: sum.call("gvl_wait"),
      blocked_ns: sum.call("blocked"), gc_ns: sum.call("gc"), allocations: 48_211, status: "200", pid: 4321, tid: 4404, tags: { customer: "7", method: "GET" },
      open: false, blame: [], runs: runs }
  end

  def hostile
    evil = "</script><script>window.pwned = 1</script>"
    runs = Runs.new(0)
    runs.add(5, "running", [[evil, evil, 1], ["\u202Eevil", nil, 0], ["N" * 10_240, "", 0], ["bad\xFF".b, "(eval)", 3]])
    runs.add(5, "gvl_wait", [["__proto__", "", 0]], { span_name: evil, thread: "\u202Et", ns: 1, frames: [{ name: evil }] })
    runs.add(5, evil, [])
    span(runs.list, 0).merge(name: evil, id: evil, kind: evil, status: evil, tags: { evil => "\u202E#{evil}" })
  end

  def write(directory)
    pages = { "span" => rails, "span_long" => rails(40), "span_empty" => span([], 0), "span_hostile" => hostile }
    pages.each do |name, document|
      File.open(File.join(directory, "#{name}.html"), "w") do |io|
        Sdb::Report::StackChart.render(document, io, title: document[:name], roots: ["/srv/shop"])
      end
      File.write(File.join(directory, "#{name}.json"), JSON.generate(document)) unless name == "span_hostile"
    end
  end
end
