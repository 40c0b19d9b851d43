# frozen_string_literal: true

module Sdb
  # Active Job on any backend: each job is a span named by its class, its id the job's. Rails announces a job to whoever
  # listens, around its own callbacks.
  module ActiveJob
    OPEN = :__sdb_active_jobs__ # fiber-local: spans of the jobs that run

    class << self
      #: (Module) -> bool
      def arrange(notifications)
        return false unless notifications.respond_to?(:subscribe)

        notifications.subscribe("perform.active_job", self)
        true
      end

      # For ActiveSupport::Notifications.
      def start(_name, _id, payload)
        (Thread.current[OPEN] ||= []) << begin_span(payload[:job])
      end

      # For ActiveSupport::Notifications.
      def finish(_name, _id, payload)
        span = Thread.current[OPEN]&.pop or return
        payload[:exception] ? span.finish(2) : span.finish
      end

      private

      # false: not recorded, or Sidekiq's middleware has begun it.
      def begin_span(job)
        name = job.class.name.to_s
        return false if Thread.current[:__sdb_job__] == name

        Sdb.begin_span(name, :job, job.job_id, nil, { queue: job.queue_name }, false) || false
      rescue StandardError
        false
      end
    end
  end
end
