# frozen_string_literal: true

module Sdb
  module Rack
    # What a request is called: a kind of request, not one of them. Before it is dispatched only its path is known;
    # afterwards the framework's own name for it.
    #
    # A path may hold what is nobody's business: tokens, mail addresses, names. So only what looks like a word of a route
    # is kept of it, and in the tag `path` numbers, too.
    module Names
      # "users" "password_resets" "v1" "sitemap.xml" ".well-known" "getUser" "RSS". Random letters are no words: they mix
      # capitals and digits, have many consonants in a row, or are hexadecimal.
      SNAKE = /[a-z]{1,16}(?:[-_][a-z]{1,16}){0,2}\d{0,2}/
      CAMEL = /[A-Za-z]?[a-z]{2,16}(?:[A-Z][a-z]{2,16}){0,2}/
      WORD = /\A(?!\h{8,}\z|.*[bcdfghjklmnpqrstvwxz]{5})\.?(?:#{SNAKE}|#{CAMEL}|[A-Z]{1,4})(?:\.[a-z]{2,5}){0,2}\z/
      NUMBER = /\A\d{1,12}\z/
      DEPTH = 8
      KNOWN = {} # rubocop:disable Style/MutableConstant -- words found so far: the same few come again and again
      KNOWN_MAX = 2000

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

      # "/posts/17/comments": the path, without what may be a secret.
      #: (Hash) -> String
      def path(env) = pattern(env["PATH_INFO"].to_s, numbers: true)

      def pattern(path, numbers: false)
        segments = path.b.split("/", -1)
        segments = segments.first(DEPTH) << "..." if segments.size > DEPTH + 1
        segments.map { |segment| kept?(segment, numbers) ? segment : ":id" }.join("/").force_encoding(Encoding::UTF_8)
      end

      def kept?(segment, numbers)
        segment.empty? || segment == "..." || KNOWN.key?(segment) || word?(segment) || (numbers && segment.match?(NUMBER))
      end

      def word?(segment)
        return false unless segment.match?(WORD)

        KNOWN[segment] = true if KNOWN.size < KNOWN_MAX
        true
      end
    end
  end
end
