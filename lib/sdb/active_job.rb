# frozen_string_literal: true

module Sdb
  # Active Job on any backend: each job is a span named by its class, its id the job's.
  module ActiveJob
    # Around everything else of the job, its own callbacks included. Prepended to ActiveJob::Base.
    module Execution
      def perform_now
        name = self.class.name.to_s
        return super if Thread.current[:__sdb_job__] == name # Sidekiq's middleware has begun it

        Sdb.span(name, kind: :job, id: job_id, queue: queue_name) { super }
      end
    end

    def self.arrange
      ActiveSupport.on_load(:active_job) { prepend(Execution) }
    end
  end
end
