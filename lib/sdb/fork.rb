# frozen_string_literal: true

# The two ways in which Ruby code forks begin the recorder's helper thread in the child, where there has to be one: before
# Ruby 3.3 (ext/recorder/scan/PROTOCOL.md, "The guest thread"). Loaded when a recording starts, not before.
unless defined?(Sdb::Fork)
  module Sdb
    module Fork
      def _fork
        pid = super
        Sdb::Recorder.after_fork if pid.zero?
        pid
      end

      def daemon(...)
        result = super
        Sdb::Recorder.after_fork
        result
      end
    end
    private_constant :Fork
  end

  Process.singleton_class.prepend(Sdb.const_get(:Fork))
end
