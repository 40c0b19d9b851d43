# frozen_string_literal: true

require_relative "../native"
require_relative "../ring"
require_relative "documents"

module Sdb
  class Profile
    # A loaded native profile and what Ruby keeps of it: names made valid UTF-8, frames, threads, clocks.
    # Threads, stacks, functions and spans are numbers here. Times are ns on the common line of all rings.
    class Data
      # Numbers that profile/model.h fixes.
      FIXED_FUNCTIONS = 4
      UNKNOWN_STACK = 1
      EMPTY_STACK = 2
      UNNAMED_FUNCTION = 2

      Function = Struct.new(:name, :path, :line, :kind)

      attr_reader :native, :rings, :functions, :threads, :ring_rows

      # logs: native Logs of the rings, still open.
      def initialize(rings, logs, window)
        @rings = rings
        from, to = Data.bounds(window)
        @native = Native::Profile.new(logs, rings.map(&:parked_until_ns), from, to)
        @functions = native.functions.map { |name, path, line, kind| Function.new(text(name), text(path), line, kind).freeze }
        @ring_rows = native.rings
        @threads = native.threads.map { |row| thread_info(row) }
        frame_functions, frame_lines = native.frames
        @frame_functions = frame_functions.unpack("L*")
        @frame_lines = frame_lines.unpack("L*")
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

      # Frames of a stack, root first. named: also the stand-ins "(unknown)" and "(no Ruby frames)".
      def frames(stack, named: false)
        return [] if !named && stack <= EMPTY_STACK

        native.stack_frames(stack).map { |function, line| frame(function, line) }
      end

      # The same without the functions that marks hide.
      def shown_frames(stack, marks, named: false)
        return [] if !named && stack <= EMPTY_STACK

        native.stack_frames(stack).reject { |function, _| marks.getbyte(function).anybits?(Selection::HIDE) }
              .map { |function, line| frame(function, line) }
      end

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
        @clocks[ring] ||= native.clocks(ring).unpack("Q*").each_slice(2).to_a.transpose.then { |pair| pair.empty? ? [[], []] : pair }
      end

      def thread_info(row)
        ring, serial, tid, flags, name, birth, death, first, last = row
        base = @ring_rows[ring][:base]
        ThreadInfo.new(ring: ring, serial: serial, pid: @rings[ring].pid, tid: tid, name: text(name),
                       start_ns: (birth || first) - base, end_ns: (death || last) - base,
                       states: flags.anybits?(4) || !@rings[ring].flags.include?(:states_exact) ? "inferred" : "exact",
                       main: flags.anybits?(2), own: flags.anybits?(1))
      end
    end
  end
end
