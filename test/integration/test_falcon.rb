# frozen_string_literal: true

require "test_helper"
require "support/app_server"

# Falcon: many requests on one thread, each in a fiber.
class TestFalcon < Minitest::Test
  include AppServer

  REQUESTS = 18

  def test_requests_in_fibers_do_not_mix
    port = free_port
    pid = start(*bundle("falcon", "serve", "--bind", "http://127.0.0.1:#{port}", "--config", "fibers.ru", "--count", "1"), port: port)
    get!(port, "/")
    threads = Array.new(REQUESTS) do |n|
      name = %w[a b c][n % 3]
      Thread.new { [name, get!(port, "/#{name}", "X-Request-Id" => "r-#{n}").body] }
    end
    threads.each { |thread| assert_equal({ name: thread.value[0] }.inspect, thread.value[1]) }
    wait_until("all have ended") { spans.count { |span| !span.open } >= REQUESTS + 1 }
    stop(pid, signal: :INT)

    merged = profile
    found = spans(merged).select { |span| span.id.to_s.start_with?("r-") }
    assert_equal (0...REQUESTS).map { |n| "r-#{n}" }.sort, found.map(&:id).sort
    assert_equal [1, 0, false, 200], [found.map(&:tid).uniq.size, found.map(&:parent).max, found.any?(&:open), found.map(&:status).max]
    found.each { |span| assert_fiber_alone(merged, span) }
    %w[a b c].each do |name|
      cpu = merged.functions(metric: :cpu, tag: "name=#{name}").total_ns / 1e6
      assert_in_delta 40 * REQUESTS / 3, cpu, 60, "tag #{name}"
    end
  end

  # Its CPU time is its own, whoever else ran meanwhile, and so are its samples but for what a late tick leaves open.
  def assert_fiber_alone(merged, span)
    # twice 20 ms, and what Falcon and perhaps a GC need; another request's turn would be 20 ms
    assert_in_delta 46, span.cpu_ns / 1e6, 8, span.id
    assert_operator span.wall_ns, :>, 140_000_000
    method = "Work.spin_#{span.name[-1]}"
    times = merged.functions(request: span.id).functions.select { |f| f.name.start_with?("Work.spin_") }
    others = times.reject { |f| f.name == method }.sum(&:total_ns)
    assert_operator others, :<, 6_000_000, "#{span.id} has #{times.map { |f| [f.name, f.total_ns] }}"
    assert_equal span.wall_ns, merged.request(span.id).runs.sum(&:ns)
  end
end
