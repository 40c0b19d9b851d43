# frozen_string_literal: true

module Sdb
  # Rake: each task that runs is a span.
  module Rake
    OPEN = :__sdb_tasks__ # fiber-local: spans of the tasks that run

    class << self
      #: (Class) -> bool
      def arrange(task)
        return false unless task.method_defined?(:execute)

        method = task.instance_method(:execute)
        own = method.source_location.to_a.first.to_s.end_with?("/rake/task.rb")
        Integrations.follow(method, :call, :return) do |event|
          event.event == :call ? enter(event.self) : leave(event, own)
        end
      end

      private

      def enter(task)
        (Thread.current[OPEN] ||= []) << Sdb.begin_span("rake #{task.name}", :task, nil, nil, nil, false)
      end

      # Rake's own method returns the actions that it ran, so nil means that it was left by an exception, or that this was a
      # dry run. A method of another library may return anything: nothing is said then.
      def leave(event, own)
        span = Thread.current[OPEN]&.pop
        Thread.current[OPEN] = nil if Thread.current[OPEN] && Thread.current[OPEN].empty?
        raised = own && event.return_value.nil? && !event.self.application.options.dryrun
        raised ? span&.finish(2) : span&.finish
      end
    end
  end
end
