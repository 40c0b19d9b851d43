# frozen_string_literal: true

module Sdb
  module Rack
    # Puts the middleware around what a config.ru makes, whichever server reads it: a Rack::Builder that is about to make its
    # app gets one more `use`, the outermost.
    module Builder
      MIDDLEWARE = ->(app) { Middleware.new(app) }
      DEPTH = :__sdb_builders__ # fiber-local: the `map` of a config.ru is a builder too, which needs none of its own

      class << self
        #: (Class) -> bool
        def arrange(builder)
          return false unless builder.method_defined?(:to_app)

          Integrations.follow(builder.instance_method(:to_app), :call, :return) do |event|
            event.event == :call ? enter(event.self) : leave
          end
        end

        private

        def enter(builder)
          depth = Thread.current[DEPTH] = Thread.current[DEPTH].to_i + 1
          return if depth > 1

          uses = builder.instance_variable_get(:@use)
          uses.unshift(MIDDLEWARE) unless uses.include?(MIDDLEWARE)
        end

        def leave
          depth = Thread.current[DEPTH].to_i
          Thread.current[DEPTH] = depth > 1 ? depth - 1 : nil
        end
      end
    end
  end
end
