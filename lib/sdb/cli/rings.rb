# frozen_string_literal: true

require_relative "command"

module Sdb
  module CLI
    # Base of the commands that look at the fixed parts of ring files, not at samples.
    class Rings < Command
      details <<~TEXT.chomp
        RING is a log file, a dump, a directory of either, the pid of a process, or "latest". By default:
        $SDB_DIR, else ./tmp/sdb, else your own directory under the temp dir.
      TEXT

      def self.details(text = nil)
        text || equal?(Rings) ? super : superclass.details
      end

      private

      def define(parser)
        parser.on("--pid PID", "only this process") do |v|
          @pid = Integer(v, 10)
        rescue ArgumentError
          raise UsageError, "--pid #{v}: not a number"
        end
      end

      # Newest last, as the log set has them.
      def find_rings(arguments)
        require_relative "../log_set"
        set = LogSet.resolve(arguments, pid: @pid)
        rings = set.rings
        set.warnings.each { |line| warn(line) }
        raise NoRingError, "no readable log in #{set.paths.join(", ")}" if rings.empty?

        rings
      end

      # The one that is meant when one is needed: the newest of the running ones, else the newest.
      def one_ring(arguments)
        rings = find_rings(arguments)
        ring = rings.reverse.find { |r| %w[running parked].include?(r.state) } || rings.last
        others = rings.size - 1
        warn("there #{others == 1 ? "is 1 more log" : "are #{others} more logs"}; `sdb ls` lists them, and a pid selects one") if others.positive?
        ring
      end

      def state_color(state)
        { "running" => :green, "parked" => :green, "dead" => :red, "disabled" => :yellow }[state]
      end
    end
  end
end
