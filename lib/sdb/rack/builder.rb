# frozen_string_literal: true

module Sdb
  module Rack
    # Puts the middleware around what a config.ru makes. Prepended to Rack::Builder's class methods by sdb/auto.
    module Builder
      def parse_file(...)
        made = super
        # Rack 2 gives the app and options of the file's first line.
        made.is_a?(Array) ? [Middleware.new(made[0]), *made.drop(1)] : Middleware.new(made)
      end
    end
  end
end
