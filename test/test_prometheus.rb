# frozen_string_literal: true

require "test_helper"
require "support/recording_helper"
require "json"

# Sdb.status as text for Prometheus, and the endpoint.
class TestPrometheus < Minitest::Test
  include RecordingHelper

  LINE = /\A(# (HELP|TYPE) sdb_\w+ .+|sdb_\w+(\{(\w+="(\\.|[^"\\])*",?)+\})? [0-9.e+-]+)\z/

  def test_every_line_is_in_the_format_and_no_name_comes_twice
    start
    sleep 0.05
    text = Sdb::Prometheus.text
    assert text.end_with?("\n")
    text.each_line(chomp: true) { |line| assert_match LINE, line }
    types = text.scan(/^# TYPE (\w+) (counter|gauge)$/)
    assert_equal types.map(&:first).uniq, types.map(&:first)
    assert_equal types.map(&:first), text.scan(/^# HELP (\w+)/).flatten
  end

  def test_figures_are_those_of_status_in_seconds
    start
    sleep 1.1
    status = Sdb.status
    values = Sdb::Prometheus.text(status).scan(/^(\w+) ([0-9.]+)$/).to_h
    assert_equal "1", values.fetch("sdb_up")
    assert_equal "0.001", values.fetch("sdb_interval_seconds")
    assert_equal status[:ticks].to_s, values.fetch("sdb_ticks_total")
    assert_in_delta status[:cost][:cpu_ns] / 1e9, Float(values.fetch("sdb_cpu_seconds_total")), 1e-9
    assert_operator Float(values.fetch("sdb_ticks_total")), :>, 0
  end

  def test_a_recorder_that_does_not_record_says_why
    status = Sdb.status.merge(state: "disabled", reason: "no \"process_vm_readv\"\nhere \\ there")
    text = Sdb::Prometheus.text(status)
    assert_includes text, "sdb_up 0\n"
    assert_includes text, 'reason="no \"process_vm_readv\"\nhere \\\\ there"'
    text.each_line(chomp: true) { |line| assert_match LINE, line }
  end

  def test_the_endpoint_answers_text_or_json
    endpoint = Sdb::Rack::Status.new
    status, headers, body = endpoint.call("REQUEST_METHOD" => "GET")
    assert_equal [200, "text/plain; version=0.0.4; charset=utf-8"], [status, headers["content-type"]]
    assert_includes body.join, "sdb_up 0"
    status, headers, body = endpoint.call("REQUEST_METHOD" => "GET", "HTTP_ACCEPT" => "application/json")
    assert_equal [200, "application/json", 1], [status, headers["content-type"], JSON.parse(body.join).fetch("schema")]
    assert_equal 405, endpoint.call("REQUEST_METHOD" => "POST").first
    assert_equal [200, []], endpoint.call("REQUEST_METHOD" => "HEAD").values_at(0, 2)
  end
end
