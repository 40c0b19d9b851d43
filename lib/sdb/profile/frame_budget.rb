# frozen_string_literal: true

module Sdb
  class Profile
    # How many frames one answer writes out. A log holds each frame of each stack once, an answer may hold a stack of
    # thousands of frames again for each of thousands of samples: a file of some hundred KiB would take minutes and
    # gigabytes. So an answer has room for what a log of its size needs; then long stacks lose their middle, and say so.
    class FrameBudget
      LEAST = 1_000_000
      PER_STACK = 16
      ENDS = 32

      #: (Integer) -> void
      def initialize(stacks)
        @left = LEAST + (PER_STACK * stacks)
      end

      # How many of the outermost and of the innermost frames of a stack may be written.
      #: (Integer) -> Integer
      def ends(depth)
        return ENDS if depth > @left && depth > 2 * ENDS

        @left -= depth
        depth
      end
    end
  end
end
