# frozen_string_literal: true

require_relative "terminal"

module Sdb
  module CLI
    # A line on the terminal while something takes long; nothing anywhere else.
    class Progress
      QUIET_S = 0.5

      def initialize(err)
        @err = err
        @terminal = Terminal.new(err)
      end

      # Shows "text ..." with the seconds when the block takes longer than half a second.
      def during(text)
        return yield unless @terminal.tty?

        shown = false
        start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        ticker = Thread.new do
          sleep QUIET_S
          loop do
            shown = true
            seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
            @err.raw "\r#{@terminal.fit("sdb: #{text} #{@terminal.draw(:ellipsis)} #{seconds.round} s")}\e[K"
            sleep 0.25
          end
        end
        begin
          yield
        ensure
          ticker.kill.join
          @err.raw "\r\e[K" if shown
        end
      end
    end
  end
end
