# frozen_string_literal: true

module Sdb
  # Sidekiq: each job is a span named by its class, its id the job's.
  module Sidekiq
    # Name of the job that runs on this fiber, for Active Job, which would tell it a second time.
    CURRENT = :__sdb_job__

    class Middleware
      def call(_instance, job, queue, &)
        name = (job["wrapped"] || job["class"]).to_s
        Thread.current[CURRENT] = name
        Sdb.span(name, kind: :job, id: job["jid"], queue: queue, &)
      ensure
        Thread.current[CURRENT] = nil
      end
    end

    # Sidekiq 7 keeps the chain in its default configuration, Sidekiq 6 in the module.
    #: (Module) -> bool
    def self.arrange(sidekiq)
      return false unless sidekiq.respond_to?(:configure_server)

      owner = sidekiq.respond_to?(:default_configuration) ? sidekiq.default_configuration : sidekiq
      owner.server_middleware { |chain| chain.prepend(Middleware) }
      true
    end
  end
end
