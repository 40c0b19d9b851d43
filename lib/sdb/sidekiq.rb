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
    def self.arrange
      owner = ::Sidekiq.respond_to?(:default_configuration) ? ::Sidekiq.default_configuration : ::Sidekiq
      owner.server_middleware { |chain| chain.prepend(Middleware) }
    end
  end
end
