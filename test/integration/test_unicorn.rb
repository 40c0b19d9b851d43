# frozen_string_literal: true

require "test_helper"
require "support/app_server"

# Servers of forked workers with one thread each: Unicorn, and Pitchfork, which forks them from a mold.
class TestUnicorn < Minitest::Test
  include AppServer

  def test_unicorn = serve("unicorn", "-l", "127.0.0.1:PORT", "-c", config("worker_processes 2"))

  def test_unicorn_that_preloads = serve("unicorn", "-l", "127.0.0.1:PORT", "-c", config("worker_processes 2\npreload_app true"))

  def test_pitchfork = serve("pitchfork", "-l", "127.0.0.1:PORT", "-c", config("worker_processes 2"))

  def config(text)
    path = File.join(@work, "server.rb")
    File.write(path, text)
    path
  end

  def serve(name, *arguments)
    port = free_port
    pid = start(*bundle(name, *arguments.map { |a| a.sub("PORT", port.to_s) }, "hello.ru"), port: port)
    pids = see_workers(port)
    get!(port, "/sleep", "X-Request-Id" => "slept")
    assert_equal "500", get(port, "/raise").code
    get!(port, "/stream", "X-Request-Id" => "streamed")
    wait_until("the last response is through") { spans.none?(&:open) } # TERM does not let Unicorn finish
    stop(pid)

    merged = profile
    found = spans(merged)
    assert_empty found.select(&:open)
    assert_equal (pids.keys + found.map(&:pid)).uniq.sort, found.map(&:pid).uniq.sort
    by_id = found.to_h { |span| [span.id, span] }
    assert_equal ["GET /sleep", 200], [by_id.fetch("slept").name, by_id.fetch("slept").status]
    assert_operator by_id.fetch("slept").blocked_ns, :>=, 110_000_000
    assert_operator by_id.fetch("streamed").wall_ns, :>=, 145_000_000
    assert_equal [500], found.select { |span| span.name == "GET /raise" }.map(&:status)
    assert_equal %w[0 1], working_rings(merged).map { |ring| ring.tags["worker"] }.sort
  end

  def see_workers(port)
    seen = {}
    wait_until("two workers answer") do
      Array.new(8) { Thread.new { get!(port, "/pid").body.to_i } }.each { |thread| seen[thread.value] = true }
      seen.size >= 2
    end
    seen
  end
end
