# frozen_string_literal: true

require_relative "../profile"
require_relative "../ring"

module Sdb
  module Oom
    # The threads of a dump with names for their frames. What a frame's address was called is in the ring; so is
    # what a thread was called, and which request it worked for.
    class LastStacks
      OWN = 1
      INFERRED = 4 # Ruby 3.1: states are known to the log alone, not to the thread table
      UNNAMED = Profile::Frame.new(name: "(not yet named)", path: "", line: 0)

      # last: the last sampled stack of every thread, for the request's name.
      #: (Dump, Ring, Profile, Array[Profile::ThreadStack]) -> void
      def initialize(dump, ring, profile, last)
        @dump = dump
        @ring = ring
        @last = last.to_h { |stack| [stack.tid, stack] }
        @infos = profile.thread_infos.to_h { |info| [info.serial, info] }
      end

      # Main thread first, then by age. When the capture has no threads, those of the last sample.
      #: () -> Array[Profile::ThreadStack]
      def threads
        raw = @dump.threads.reject { |thread| thread.thread_flags.anybits?(OWN) }.sort_by(&:serial)
        return @last.values if raw.empty?

        names = name_frames(raw)
        raw.map { |thread| stack(thread, names.shift(thread.frames.size)) }
      end

      private

      def name_frames(raw)
        log = Ring.open_log(@dump.path)
        log.name_frames(raw.flat_map(&:frames).flat_map(&:to_a).pack("Q*"))
      ensure
        log&.close
      end

      def stack(thread, names)
        info = @infos[thread.serial]
        last = @last[thread.tid]
        state, since = state_of(thread, last)
        Profile::ThreadStack.new(pid: @ring.pid, tid: thread.tid, name: info&.name, span: last&.span, state: state,
                                 since_ns: since, frames: frames(thread, names))
      end

      def state_of(thread, last)
        return [last&.state || "unknown", last&.since_ns] if thread.thread_flags.anybits?(INFERRED)

        known = thread.state < Profile::STATES.size # a hostile number may be too large for an index
        [known ? Profile::STATES[thread.state] : "unknown", [thread.since_monotonic_ns - @ring.start_monotonic_ns, 0].max]
      end

      # Root first, as everywhere.
      def frames(thread, names)
        shown = names.compact.map { |row| row ? Profile::Frame.new(**row) : UNNAMED }
        missing = thread.frame_total - thread.frames.size
        return shown.reverse unless missing.positive?

        [Profile::Frame.new(name: "(#{missing} older frames were not copied)", path: "", line: 0), *shown.reverse]
      end
    end
  end
end
