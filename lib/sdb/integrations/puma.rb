# frozen_string_literal: true

module Sdb
  # Puma in cluster mode: the ring of each worker is tagged with its index, however often it is replaced.
  module Puma
    # spawn_worker runs in the master (or in worker 0 with fork_worker): what is forked meanwhile is that worker.
    # cluster: Puma::Cluster or Puma::Cluster::Worker.
    #: (Class) -> bool
    def self.arrange(cluster)
      return false unless cluster.method_defined?(:spawn_worker) || cluster.private_method_defined?(:spawn_worker)

      Integrations.follow(cluster.instance_method(:spawn_worker), :call, :return) do |event|
        Native::Recorder.child_text(event.event == :call ? "tag.worker=#{first_argument(event)}" : nil)
      end
    end

    # For events of a call.
    def self.first_argument(event)
      event.binding.local_variable_get(event.parameters.first.last)
    end
  end
end
