# frozen_string_literal: true

module Sdb
  class Profile
    # How many frames one answer writes out. A log holds each frame of each stack once, an answer may hold a stack of
    # thousands of frames again for each of thousands of samples: a file of some hundred KiB would take minutes and
    # gigabytes. So an answer has room for more than any honest log needs; then long stacks lose their middle, and say so.
    class FrameBudget
      # Per answer, and for each stack that the log holds.
      STACKS = [100_000, 0].freeze
      RUNS = [300_000, 8].freeze
      ALL = [600_000, 16].freeze
      ENDS = 4

      # stacks: of the log. limits: one of the above.
      #: (Integer, [Integer, Integer]) -> void
      def initialize(stacks, limits)
        @left = limits.first + (limits.last * stacks)
        @made = {}
      end

      # How many of the outermost and of the innermost frames of a stack may be written.
      #: (Integer) -> Integer
      def ends(depth)
        return ENDS if depth > @left && depth > 2 * ENDS

        @left -= depth
        depth
      end

      # The block's frames, made once for the same stack: whoever writes them may know them again.
      def once(stack, ends) = @made[(stack << 32) | ends] ||= yield.freeze
    end
  end
end
