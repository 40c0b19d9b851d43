# frozen_string_literal: true

require_relative "../shared/text"

module Sdb
  module Export
    # Collapsed stacks: one line a distinct stack with its time in microseconds. What flamegraph.pl, speedscope,
    # inferno and others read.
    module Collapsed
      SUMMARY = "one line a distinct stack: process;thread;frame;... microseconds"
      EXTENSION = ".txt"

      module_function

      def options(parser, values)
        parser.on("--lines", "add path:line to frames") { values[:lines] = true }
      end

      #: (Profile, IO, metric: Symbol, filters: Hash, ?lines: bool) -> void
      def write(profile, io, metric:, filters:, lines: false)
        io.write(profile.collapsed(metric: metric, lines: lines, **filters).gsub(/[^\n]+/) { |line| Text.clean(line) })
      end
    end
  end
end
