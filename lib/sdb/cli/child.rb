# frozen_string_literal: true

module Sdb
  module CLI
    # Runs a command in the foreground as if sdb were not between it and its caller.
    module Child
      # Those that a terminal sends to the whole foreground group: the command has got them already.
      FROM_TERMINAL = %w[INT QUIT TSTP].freeze
      PASSED = %w[INT QUIT TERM HUP USR1 USR2 ALRM].freeze

      class << self
        # @return [Integer, nil] pid of the last command run
        attr_reader :last_pid

        # @return [Integer] what a shell would call its exit status
        # SystemCallError when it cannot be run.
        #: (Array[String], Hash[String, String]) -> Integer
        def run(command, environment)
          # Signals that come before the command is there wait until it is.
          early = []
          pid = nil
          old = trap_all { |signal| pid ? pass(signal, pid) : early << signal }
          pid = @last_pid = Process.spawn(environment, [command.first, command.first], *command.drop(1))
          early.each { |signal| pass(signal, pid) }
          status_of(wait(pid))
        ensure
          old&.each { |signal, handler| trap(signal, handler || "DEFAULT") }
        end

        private

        def trap_all
          PASSED.to_h { |signal| [signal, trap(signal) { yield signal }] }
        end

        def pass(signal, pid)
          return if FROM_TERMINAL.include?(signal) && $stdin.tty? && foreground?

          Process.kill(signal, pid)
        rescue Errno::ESRCH
          nil
        end

        # Whether we are in the terminal's foreground group, which gets its signals.
        def foreground?
          File.read("/proc/self/stat").rpartition(") ").last.split[5].to_i == Process.getpgrp
        rescue SystemCallError
          true
        end

        def wait(pid)
          Process.wait2(pid).last
        end

        def status_of(status)
          status.signaled? ? 128 + status.termsig : status.exitstatus
        end
      end
    end
  end
end
