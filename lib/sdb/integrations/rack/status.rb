# frozen_string_literal: true

require "json"
require_relative "../../prometheus"

module Sdb
  module Rack
    # An endpoint with the recorder's status, for who mounts it; nothing does by itself:
    #
    #   map("/metrics/sdb") { run Sdb::Rack::Status.new }   # config.ru
    #   mount Sdb::Rack::Status.new => "/metrics/sdb"       # routes of Rails
    #
    # Text for Prometheus, or the document of `sdb status --json` for who accepts JSON.
    class Status
      def call(env)
        return [405, { "allow" => "GET, HEAD" }, []] unless %w[GET HEAD].include?(env["REQUEST_METHOD"])

        json = env["HTTP_ACCEPT"].to_s.include?("application/json")
        text = json ? JSON.generate(Sdb.status) : Prometheus.text
        headers = { "content-type" => json ? "application/json" : Prometheus::CONTENT_TYPE, "cache-control" => "no-store" }
        [200, headers, env["REQUEST_METHOD"] == "HEAD" ? [] : [text]]
      end
    end
  end
end
