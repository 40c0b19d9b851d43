# frozen_string_literal: true

# Before Ruby 3.3 nothing can ask for the recorder's helper thread from outside the VM in a forked child, so the two
# ways in which Ruby code forks are told about it. Loaded when a recording starts, not before.
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

  Process.singleton_class.prepend(Sdb.const_get(:Fork)) if RUBY_VERSION < "3.3"
end
