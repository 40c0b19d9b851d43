# frozen_string_literal: true

module Sdb
  module Rack
    # A response body that ends its span when the server closes it. Only for servers that do not tell when a response
    # is through. Answers to all that the body answers to.
    class Body
      def initialize(body, span)
        @body = body
        @span = span
      end

      def each(&) = @body.each(&)

      def close
        @body.close if @body.respond_to?(:close)
      ensure
        @span.finish
      end

      def respond_to_missing?(name, include_all = false)
        name != :to_str && @body.respond_to?(name, include_all)
      end

      def method_missing(name, ...)
        return super unless respond_to_missing?(name)

        # Who takes a body as an Array does not close it any more (Rack 3, "Enumerable Body").
        name == :to_ary ? @body.to_ary.tap { close } : @body.__send__(name, ...)
      end
      ruby2_keywords :method_missing
    end
  end
end
