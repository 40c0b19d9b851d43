# frozen_string_literal: true

module Sdb
  module Rack
    # What a request is called: a kind of request, not one of them. Before it is dispatched only its path is known;
    # afterwards the framework's own name for it.
    module Names
      NUMBER = /\A\d[\d,.-]*\z/
      CODE = /\A(?=.*\d)[\h-]{16,}\z|\A(?=.*\d)[\w-]{22,}\z/ # ids and tokens
      CODE_MIN = 16
      DEPTH = 8

      module_function

      # "GET /posts/:id/comments"
      #: (Hash) -> String
      def by_path(env)
        "#{env["REQUEST_METHOD"]} #{pattern("#{env["SCRIPT_NAME"]}#{env["PATH_INFO"]}")}"
      end

      # Name given by Rails or Sinatra while they handled it, else nil.
      #: (Hash) -> String?
      def by_framework(env)
        controller = env["action_controller.instance"]
        if controller
          name = controller.class.name
          return "#{name}##{controller.action_name}" if name && controller.respond_to?(:action_name)
        end
        route = env["sinatra.route"]
        route.is_a?(String) ? route : nil
      end

      def pattern(path)
        path = path.scrub("?") unless path.valid_encoding?
        return path unless path.match?(/\d/) || path.count("/") > DEPTH

        segments = path.split("/", -1)
        segments = segments.first(DEPTH) << "..." if segments.size > DEPTH + 1
        segments.map { |segment| id?(segment) ? ":id" : segment }.join("/")
      end

      def id?(segment)
        segment.match?(NUMBER) || (segment.size >= CODE_MIN && segment.match?(CODE))
      end
    end
  end
end
