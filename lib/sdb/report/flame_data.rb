# frozen_string_literal: true

require_relative "page"

module Sdb
  module Report
    # What a flame graph is drawn from: columns, as the profile has them.
    #
    # strings:: Array of String
    # funcs:: columns `name:`, `path:` (indexes into strings; path may be nil), `line:` (0 unknown),
    #         `category:` (one of CATEGORIES) and, where it differs, `place:` (the path as people read it;
    #         patterns are matched with the whole one)
    # stacks:: columns `parent:` (index of the caller's stack, -1 for none; always smaller than the own
    #          index) and `func:`
    # cells:: time, one row for each stack on which a thread spent some itself: columns `stack:`,
    #         `thread:` and one per metric, in ns
    # threads:: Array of Hash `{pid:, tid:, name:}`; name may be nil
    # facts:: Hash about the recording and what it lost; see Facts
    #
    # Totals are not in it: the page sums them up, for any choice of threads, filters and metric.
    class FlameData
      CATEGORIES = %i[app gem stdlib c eval internal].freeze
      METRICS = %i[wall cpu gvl_wait blocked gc].freeze

      attr_reader :strings, :funcs, :stacks, :cells, :threads, :facts

      #: (strings: Array[String], funcs: Hash, stacks: Hash, cells: Hash, threads: Array[Hash], ?facts: Hash) -> void
      def initialize(strings:, funcs:, stacks:, cells:, threads:, facts: {})
        @strings = strings
        @funcs = funcs
        @stacks = stacks
        @cells = cells
        @threads = threads
        @facts = facts
        freeze
      end

      # The metrics it has times for, in the order of METRICS.
      #: () -> Array[Symbol]
      def metrics
        METRICS.select { |metric| cells.key?(metric) }
      end

      # Columns of nonnegative integers for Payload.
      #: () -> Hash[Symbol, Array[Integer]]
      def columns
        {
          func_name: funcs[:name],
          func_path: funcs[:path].map { |path| path ? path + 1 : 0 },
          func_place: (funcs[:place] || funcs[:path]).map { |path| path ? path + 1 : 0 },
          func_line: funcs[:line].map { |line| [line.to_i, 0].max },
          func_category: funcs[:category].map { |name| CATEGORIES.index(name) || CATEGORIES.size - 1 },
          stack_up: stacks[:parent].each_with_index.map { |parent, stack| distance(parent, stack) },
          stack_func: stacks[:func],
          cell_stack: cells[:stack],
          cell_thread: cells[:thread]
        }.merge(metrics.to_h { |metric| [metric, cells[metric].map { |ns| [ns, 0].max }] })
      end

      # The part that goes into the page as JSON.
      #: () -> Hash[Symbol, untyped]
      def document
        { categories: CATEGORIES, metrics: metrics, strings: strings.map { |text| Page.clean(text) },
          threads: threads.map { |thread| thread.merge(name: thread[:name] && Page.clean(thread[:name])) }, facts: facts }
      end

      private

      # 0: no caller, else how many rows up the caller is. Mostly 1, which compresses to nothing.
      def distance(parent, stack)
        return 0 if parent.nil? || parent.negative?
        raise ArgumentError, "stack #{stack} has the later stack #{parent} as its caller" unless parent < stack

        stack - parent
      end
    end
  end
end
