# frozen_string_literal: true

require_relative "../shared/text"

module Sdb
  module CLI
    # The runs of one request as calls on a time line: a call is a frame for as long as it stayed on the stack
    # at its place. What changed between two samples is not known, so a call that was left and entered again within
    # an interval counts as one.
    class Waterfall
      # depth counts from 0.
      Call = Struct.new(:name, :path, :line, :depth, :start_ns, :end_ns, :runs, :parent, :children) do
        def duration_ns = end_ns - start_ns
      end

      BAR = 32

      # width: columns of a bar
      attr_reader :width

      def initialize(runs, begin_ns, wall_ns, width: BAR)
        @width = width
        @begin_ns = begin_ns
        @wall_ns = [wall_ns, 1].max
        @roots = []
        build(runs)
      end

      # Calls of at least min_ns, callers before what they called, in order of time; at most `depth` levels.
      #: (min_ns: Integer, ?depth: Integer?) -> Array[Call]
      def calls(min_ns:, depth: nil)
        list = []
        todo = @roots.reverse
        until todo.empty?
          call = todo.pop
          next if call.duration_ns < min_ns || (depth && call.depth >= depth)

          list << call
          todo.concat(call.children.reverse)
        end
        list
      end

      # Of calls as #calls gives them those that tell something: where the time parts ways, where it ends, and what
      # the block says (the app's own). The others are counted: [call, how many below it were left out].
      #: (Array[Call]) { (Call) -> bool } -> Array[[Call, Integer]]
      def essential(calls)
        below = calls.each_with_object({}.compare_by_identity) { |call, all| (all[call.parent] ||= []) << call if call.parent }
        kept = []
        folded = []
        calls.each do |call|
          through = below[call]&.size == 1 && below[call].first.duration_ns * 10 >= call.duration_ns * 9
          begins = call.parent.nil? || below[call.parent].size > 1
          next folded << call if through && !begins && !yield(call)

          # a line that counts one call is no shorter than that call
          folded.size == 1 ? kept << [folded.first, 0] : (kept.last[1] = folded.size if kept.any?)
          kept << [call, 0]
          folded.clear
        end
        kept
      end

      # "   ████░░░   " : when it was on the stack, each cell in the state that took most of it.
      def bar(call, terminal)
        Array.new(width) { |cell| terminal_cell(call, cell, terminal) }.join
      end

      # Nanoseconds from the begin of the request.
      def offset_ns(call) = call.start_ns - @begin_ns

      private

      def build(runs)
        open = []
        runs.each do |run|
          till = run.at_ns + run.ns
          common = common_depth(open, run.frames)
          open = open.first(common)
          run.frames.drop(common).each { |frame| open << add(frame, open.last, open.size, run.at_ns) }
          # One line more precise: where the call is now.
          open.each { |call| extend_call(call, run, till) }
        end
      end

      # Frames that go on: same function at the same depth. The line may move.
      def common_depth(open, frames)
        open.zip(frames).take_while { |call, frame| frame && call.name == frame.name && call.path == frame.path }.size
      end

      def add(frame, parent, depth, at_ns)
        call = Call.new(frame.name, frame.path, frame.line, depth, at_ns, at_ns, [], parent, [])
        (parent ? parent.children : @roots) << call
        call
      end

      def extend_call(call, run, till)
        call.end_ns = till
        call.runs << run
      end

      def terminal_cell(call, cell, terminal)
        from = @begin_ns + @wall_ns * cell / width
        till = @begin_ns + @wall_ns * (cell + 1) / width
        spent = Hash.new(0)
        first = call.runs.bsearch_index { |run| run.at_ns + run.ns > from } || call.runs.size
        first.upto(call.runs.size - 1) do |i|
          run = call.runs[i]
          break if run.at_ns >= till

          spent[run.state] += [run.at_ns + run.ns, till].min - [run.at_ns, from].max
        end
        state, time = spent.max_by { |_, ns| ns }
        # A cell that is mostly somebody else's stays empty, but a short call is seen somewhere.
        return " " if time.nil? || (spent.values.sum * 2 < till - from && call.duration_ns >= till - from)

        terminal.draw(state.to_sym)
      end
    end
  end
end
