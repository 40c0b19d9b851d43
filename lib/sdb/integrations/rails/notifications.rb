# frozen_string_literal: true

module Sdb
  module Rails
    # Child spans from ActiveSupport's notifications, for who asks for them (config.sdb.spans, SDB_SPANS): each costs
    # the app a microsecond or two and the log some 60 bytes.
    class Notifications
      PATTERNS = {
        sql: /\Asql\.active_record\z/,
        cache: /\Acache_(read|write|fetch_hit|generate|delete|read_multi|write_multi)\.active_support\z/,
        view: /\Arender_(template|partial|collection|layout)\.action_view\z/,
        http: /\A(request\.(faraday|http)|excon\.request)\z/,
        mail: /\Adeliver\.action_mailer\z/
      }.freeze
      IGNORED_SQL = %w[SCHEMA CACHE].freeze
      OPEN = :__sdb_notifications__ # fiber-local: spans of events that have started

      # names: Array of Symbol, of PATTERNS. Unknown ones are returned.
      def self.subscribe(names)
        known, unknown = names.map(&:to_sym).uniq.partition { |name| PATTERNS.key?(name) }
        known.each { |name| ActiveSupport::Notifications.subscribe(PATTERNS.fetch(name), new(name)) }
        unknown
      end

      def initialize(kind)
        @kind = kind
      end

      def start(name, _id, payload)
        (Thread.current[OPEN] ||= []) << begin_span(name, payload)
      end

      def finish(_name, _id, payload)
        span = Thread.current[OPEN]&.pop or return
        span.status = 2 if payload[:exception]
        span.finish
      end

      private

      # false: not recorded.
      def begin_span(name, payload)
        return false if @kind == :sql && (payload[:cached] || IGNORED_SQL.include?(payload[:name]))

        Sdb.begin_span(title(name, payload), @kind, nil, nil, nil, false) || false
      rescue StandardError
        false
      end

      def title(name, payload)
        case @kind
        when :sql then payload[:name] || payload[:sql].to_s[/\A\s*\w+/] || "SQL"
        when :view then payload[:identifier].to_s.split("/").last(2).join("/")
        when :http then http_title(payload)
        else name.delete_suffix(".active_support").delete_suffix(".action_mailer")
        end
      end

      def http_title(payload)
        url = payload[:url] || (payload[:request].respond_to?(:uri) && payload[:request].uri)
        "#{payload[:method].to_s.upcase} #{url.respond_to?(:host) ? url.host : payload[:host]}".strip
      end
    end
  end
end
