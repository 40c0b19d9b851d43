# frozen_string_literal: true

require_relative "../rack"

module Sdb
  module Rails
    # Stands innermost, where OpenTelemetry's own middleware has begun its span: takes that one's ids over.
    class Trace
      def initialize(app)
        @app = app
      end

      def call(env)
        span = env[Sdb::Rack::SPAN]
        take_over(span) if span
        @app.call(env)
      end

      private

      def take_over(span)
        context = ::OpenTelemetry::Trace.current_span.context
        return unless context.valid?

        span.trace_id = context.hex_trace_id
        span.tag(otel_span: context.hex_span_id)
      rescue StandardError
        nil # an app without ids is better than none
      end
    end
  end
end
