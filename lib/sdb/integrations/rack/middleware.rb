# frozen_string_literal: true

module Sdb
  module Rack
    # Makes each request a span: from here to the end of the response, the sending of its body included.
    #
    # id: X-Request-Id when the request has one, else made up. trace id: of a W3C traceparent. name: the path with ids
    # left out, and at the end what Rails or Sinatra call it. status: of the response.
    class Middleware
      REQUEST_ID = "HTTP_X_REQUEST_ID"
      TRACEPARENT = /\A\h{2}-(?!0{32})(\h{32})-(\h{16})-\h{2}/
      ID_MAX = 255

      def initialize(app)
        @app = app
      end

      def call(env)
        return @app.call(env) if env.key?(SPAN) # another of us is further out

        span = begin_span(env)
        span ? follow(env, span) : @app.call(env)
      end

      private

      def begin_span(env)
        tags = { path: Names.path(env) }
        header = env["HTTP_TRACEPARENT"]
        if header && (parent = TRACEPARENT.match(header.b))
          trace = parent[1]
          tags[:parent_span] = parent[2]
        end
        Sdb.begin_span(Names.by_path(env), :request, request_id(env), trace, tags, true)
      rescue StandardError
        nil # a request that we cannot describe is served all the same
      end

      # As Rails cleans it.
      def request_id(env)
        id = env[REQUEST_ID]
        return if id.nil? || id.empty?

        id = id.b # \w is ASCII, and what is not valid UTF-8 raises nothing
        id = id.gsub(/[^\w\-@]/, "")[0, ID_MAX] unless id.match?(/\A[\w\-@]{1,255}\z/)
        id unless id.empty?
      end

      def follow(env, span)
        env[SPAN] = span
        through = false
        response = @app.call(env)
        response = hand_over(env, span, response)
        through = true
        response
      rescue Exception => e # rubocop:disable Lint/RescueException -- passed on
        span.status = 500
        span.tag(error: e.class.name.to_s)
        raise
      ensure
        unless through
          rename(env, span)
          span.finish
        end
      end

      def hand_over(env, span, response)
        rename(env, span)
        status = response[0].to_i
        span.status = status if status.positive?
        span.returned
        if (finished = env["rack.response_finished"])
          finished << ->(*) { span.finish }
        elsif (replied = env["rack.after_reply"])
          replied << -> { span.finish }
        else
          status, headers, body = response
          response = [status, headers, Body.new(body, span)]
        end
        response
      end

      def rename(env, span)
        name = Names.by_framework(env)
        span.name = name if name
      end
    end
  end
end
