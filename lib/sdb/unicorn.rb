# frozen_string_literal: true

require_relative "rack"

module Sdb
  # Unicorn and Pitchfork: they read a config.ru by themselves, and tell before a fork which worker it will be.
  module Unicorn
    module Builder
      # The server calls what this gives when it wants the app made; it looks at the number of arguments.
      def builder(...)
        make = super
        ->(first, server) { Sdb::Rack::Middleware.new(make.call(first, server)) }
      end
    end

    # Unicorn's master forks right after this hook of the configuration.
    module Server
      def before_fork
        hook = super
        lambda do |server, worker|
          Native::Recorder.child_text("tag.worker=#{worker.nr}")
          hook&.call(server, worker)
        end
      end
    end

    # Pitchfork's workers come from a mold, which a sibling forks.
    module Fork
      def spawn_worker(worker, ...)
        Native::Recorder.child_text("tag.worker=#{worker.nr}")
        super
      ensure
        Native::Recorder.child_text(nil)
      end
    end

    # server: Unicorn or Pitchfork.
    def self.arrange(server)
      server.singleton_class.prepend(Builder)
      http = server::HttpServer
      pitchfork = http.method_defined?(:spawn_worker) || http.private_method_defined?(:spawn_worker)
      http.prepend(pitchfork ? Fork : Server)
    end

    #: (Module) -> bool
    def self.complete?(server)
      http = server.respond_to?(:builder) && server.const_defined?(:HttpServer) && server::HttpServer
      http && (http.method_defined?(:spawn_missing_workers) || http.private_method_defined?(:spawn_missing_workers))
    end
  end
end
