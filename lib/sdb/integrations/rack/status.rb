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
    # Text for Prometheus, or the document of `sdb status --json` for who accepts JSON. Without details: an endpoint is often
    # open to more people than meant, so paths, the pid and what is in a Ruby error stay inside.
    class Status
      PATH = %r{(?<![\w/])/[^\s,:;)"']+}

      # details: the document as it is, with the ring's path and the pid.
      #: (?details: bool) -> void
      def initialize(details: false)
        @details = details
      end

      def call(env)
        return [405, { "allow" => "GET, HEAD" }, []] unless %w[GET HEAD].include?(env["REQUEST_METHOD"])

        json = env["HTTP_ACCEPT"].to_s.include?("application/json")
        status = @details ? Sdb.status : public_part(Sdb.status)
        text = json ? JSON.generate(status) : Prometheus.text(status)
        headers = { "content-type" => json ? "application/json" : Prometheus::CONTENT_TYPE, "cache-control" => "no-store" }
        [200, headers, env["REQUEST_METHOD"] == "HEAD" ? [] : [text]]
      end

      private

      def public_part(status)
        words = ->(text) { text&.gsub(PATH, "(path)") }
        status.except(:pid, :ring).merge(reason: words.call(status[:reason]), warnings: status[:warnings].map(&words))
      end
    end
  end
end
