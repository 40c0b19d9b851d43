# frozen_string_literal: true

require_relative "../rack"

module Sdb
  module Rails
    # The Rack middleware, and the request's id for Rails: what `sdb request` finds is what stands in the app's log.
    class Middleware < Sdb::Rack::Middleware
      def call(env)
        if (outer = env[Sdb::Rack::SPAN])
          give_id(env, outer)
          return @app.call(env)
        end
        super
      end

      private

      def follow(env, span)
        give_id(env, span)
        super
      end

      def give_id(env, span)
        env[REQUEST_ID] = span.id if env[REQUEST_ID].to_s.empty?
      end
    end
  end
end
