# frozen_string_literal: true

module Sdb
  # Puma in cluster mode: the ring of each worker is tagged with its index, however often it is replaced.
  module Puma
    module Cluster
      # Runs in the master (or in worker 0 with fork_worker): what is forked meanwhile is that worker.
      def spawn_worker(index, ...)
        Native::Recorder.child_text("tag.worker=#{index}")
        super
      ensure
        Native::Recorder.child_text(nil)
      end
    end

    def self.arrange
      ::Puma::Cluster.prepend(Cluster) if ::Puma::Cluster.method_defined?(:spawn_worker)
      worker = defined?(::Puma::Cluster::Worker) && ::Puma::Cluster::Worker
      worker.prepend(Cluster) if worker && (worker.method_defined?(:spawn_worker) || worker.private_method_defined?(:spawn_worker))
    end
  end
end
