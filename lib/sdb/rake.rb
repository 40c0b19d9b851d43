# frozen_string_literal: true

module Sdb
  # Rake: each task that runs is a span.
  module Rake
    module Task
      def execute(...)
        Sdb.span("rake #{name}", kind: :task) { super }
      end
    end

    def self.arrange
      ::Rake::Task.prepend(Task)
    end
  end
end
