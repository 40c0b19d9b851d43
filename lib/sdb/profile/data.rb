# frozen_string_literal: true

require_relative "../native"
require_relative "../ring"
require_relative "documents"
require_relative "frame_budget"

module Sdb
  class Profile
    # A loaded native profile and what Ruby keeps of it: names made valid UTF-8, frames, threads, clocks.
    # Threads, stacks, functions and spans are numbers here. Times are ns on the common line of all rings.
    class Data
      Function = Struct.new(:name, :path, :line, :kind)

      attr_reader :native, :rings, :functions, :threads, :ring_rows

      # logs: native Logs of the rings, still open.
      def initialize(rings, logs, window)
        @rings = rings
        from, to = Data.bounds(window)
        @native = Native::Profile.new(logs, rings.map(&:parked_until_ns), from, to)
        @functions = native.functions.map { |row| Function.new(text(row[:name]), text(row[:path]), row[:line], row[:kind]).freeze }
        @ring_rows = native.rings
        @threads = native.threads.map { |row| thread_info(row) }
        @frames = {}
        @clocks = {}
      end

      def self.bounds(window)
        [window&.begin || 0, window&.end && window.end >= 0 ? window.end : nil]
      end

      def end_ns = @ring_rows.map { |row| row[:last] }.max || 0

      # Ring time of an instant on the common line.
      def ring_time(ring, at) = [at - @ring_rows[ring][:base], 0].max

      # Realtime ns of an instant: by the nearest clock record before, else after, else the start.
      def realtime(ring, at)
        ats, reals = clocks(ring)
        return @rings[ring].start_realtime_ns + ring_time(ring, at) if ats.empty?

        n = (ats.bsearch_index { |t| t > at } || ats.size) - 1
        n = 0 if n.negative?
        reals[n] + (at - ats[n])
      end

      # Instant on the common line of a realtime, by the ring that was recording then; else the nearest guess.
      def instant_of(realtime_ns)
        guesses = @rings.each_index.map do |ring|
          ats, reals = clocks(ring)
          n = reals.rindex { |real| real <= realtime_ns } || 0
          at = ats.empty? ? @ring_rows[ring][:base] + realtime_ns - @rings[ring].start_realtime_ns : ats[n] + realtime_ns - reals[n]
          row = @ring_rows[ring]
          return at if at.between?(row[:first], row[:last])

          at
        end
        guesses.min_by { |at| [at.abs, (at - end_ns).abs].min } || 0
      end

      # How many frames an answer may write: one of FrameBudget's limits.
      def frame_budget(limits) = FrameBudget.new(native.stack_count, limits)

      # Frames of a stack, root first, without the functions that marks hide. named: also the stand-ins "(unknown)" and
      # "(no Ruby frames)". budget: see FrameBudget. newest: only so many innermost ones.
      #: (Integer, ?marks: String?, ?named: bool, ?budget: FrameBudget?, ?newest: Integer?) -> Array[Frame]
      def frames(stack, marks: nil, named: false, budget: nil, newest: nil)
        return [] if !named && stack < Native::Profile::FIXED_STACKS

        depth = native.stack_depth(stack)
        return ends(stack, depth, 0, newest, marks) if newest
        return ends(stack, depth, depth, depth, marks) if budget.nil?

        kept = budget.ends(depth)
        budget.once(stack, kept) { ends(stack, depth, kept, kept, marks) }
      end

      # The outermost and innermost frames of a stack.
      def ends(stack, depth, oldest, newest, marks)
        native.stack_frames(stack, oldest, newest).filter_map do |function, line|
          next (cut(depth - oldest - newest) if oldest.positive?) if function.nil?

          frame(function, line) unless marks&.getbyte(function)&.anybits?(Selection::HIDE)
        end
      end

      # What stands where frames were left out.
      def cut(count) = Frame.new(name: "(#{count} frames left out)", path: "", line: 0)

      def frame(function, line)
        @frames[(function << 32) | line] ||= begin
          f = @functions[function]
          Frame.new(name: f.name, path: f.path, line: line)
        end
      end

      def function_time(number, self_ns, total_ns)
        f = @functions[number]
        FunctionTime.new(name: f.name, path: f.path, line: f.line, self_ns: self_ns, total_ns: total_ns)
      end

      def thread_name(number)
        info = @threads[number]
        info.name || ("main" if info.main)
      end

      def text(bytes)
        return if bytes.nil?

        (bytes.valid_encoding? ? bytes : bytes.scrub).freeze
      end

      private

      def clocks(ring)
        @clocks[ring] ||= native.clocks(ring).values_at(:at, :realtime).map { |column| column.unpack("Q*") }
      end

      def thread_info(row)
        ring = row[:ring]
        base = @ring_rows[ring][:base]
        ThreadInfo.new(ring: ring, serial: row[:serial], pid: @rings[ring].pid, tid: row[:tid], name: text(row[:name]),
                       start_ns: (row[:birth] || row[:first]) - base, end_ns: (row[:death] || row[:last]) - base,
                       states: row[:inferred] || !@rings[ring].flags.include?(:states_exact) ? "inferred" : "exact",
                       main: row[:main], own: row[:own])
      end
    end
  end
end
