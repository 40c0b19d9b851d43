# frozen_string_literal: true

module Sdb
  # Finds the frameworks and servers of the app when it loads them and arranges what makes their work spans. Used by
  # sdb/auto only; nothing of it is loaded or patched by `require "sdb"`.
  module Integrations
    # name => [is it there, what to do]. One file each; a library that never comes costs nothing but the question.
    ALL = {
      bundler: [-> { defined?(::Bundler) && ::Bundler.respond_to?(:setup) }, lambda {
        require_relative "integrations/require_hook"
        ::Bundler.singleton_class.prepend(RequireHook::Bundler)
      }],
      rails: [-> { defined?(::Rails::Railtie) }, -> { require_relative "rails/railtie" }],
      rack: [-> { defined?(::Rack::Builder) }, lambda {
        require_relative "rack"
        ::Rack::Builder.singleton_class.prepend(Sdb::Rack::Builder)
      }],
      puma: [-> { defined?(::Puma::Cluster) && ::Puma::Cluster.method_defined?(:spawn_workers) }, lambda {
        require_relative "puma"
        Sdb::Puma.arrange
      }],
      unicorn: [-> { defined?(::Unicorn) && unicorn_complete?(::Unicorn) }, -> { Sdb::Unicorn.arrange(::Unicorn) }],
      pitchfork: [-> { defined?(::Pitchfork) && unicorn_complete?(::Pitchfork) }, -> { Sdb::Unicorn.arrange(::Pitchfork) }],
      sidekiq: [-> { defined?(::Sidekiq) && ::Sidekiq.respond_to?(:configure_server) }, lambda {
        require_relative "sidekiq"
        Sdb::Sidekiq.arrange
      }],
      active_job: [-> { defined?(::ActiveSupport) && ::ActiveSupport.respond_to?(:on_load) }, lambda {
        require_relative "active_job"
        Sdb::ActiveJob.arrange
      }],
      rake: [-> { defined?(::Rake::Task) && ::Rake::Task.method_defined?(:execute) }, lambda {
        require_relative "rake"
        Sdb::Rake.arrange
      }]
    }.freeze

    @pending = ALL.dup
    @busy = false

    class << self
      # Arranges what is loaded and watches `require` for the rest. Idempotent.
      #: () -> void
      def arrange
        check
        return if @pending.empty?

        require_relative "integrations/require_hook"
        RequireHook.arm
      end

      # Names of what is arranged.
      #: () -> Array[Symbol]
      def arranged = ALL.keys - @pending.keys - [:bundler]

      # After something was loaded.
      #: () -> void
      def check
        return if @busy || @pending.empty?

        @busy = true # what we load ourselves asks again
        begin
          @pending.each_pair.select { |_, (there, _)| there.call }.each { |name, (_, act)| take(name, act) }
        ensure
          @busy = false
        end
      end

      # Whether such a server is loaded so far that it can be arranged.
      def unicorn_complete?(server)
        require_relative "unicorn"
        Sdb::Unicorn.complete?(server)
      end

      private

      # An integration that fails is left out; the app goes on.
      def take(name, act)
        @pending = @pending.except(name)
        act.call
      rescue StandardError, LoadError => e
        warn "sdb: #{name} is not followed: #{e.class}: #{e.message}"
      end
    end
  end
end
