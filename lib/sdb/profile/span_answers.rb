# frozen_string_literal: true

require_relative "selection"

module Sdb
  class Profile
    # Makes Span, Request and Blame of span numbers.
    class SpanAnswers
      OPEN = 1
      BLAME_FRAMES = 5
      BLAME_ROWS = 10
      STATUS = { 0 => nil, 1 => "ended", 2 => "raised" }.freeze

      Row = Struct.new(:ring, :thread, :parent, :id, :flags, :begin_ns, :end_ns, :kind, :name, :request_id, :trace_id,
                       :status, :cpu_ns, :running_ns, :gvl_wait_ns, :blocked_ns, :gc_ns, :allocations, :tags)

      def initialize(data)
        @data = data
      end

      #: (Integer, ?blame: bool) -> Span
      def span(number, blame: false)
        Span.new(**fields(number, blame: blame))
      end

      # selection: whose patterns leave out frames of the runs
      #: (Integer, Selection, Hash[Symbol, Integer]) -> Request
      def request(number, selection, lost)
        row = row(number)
        intervals = @data.native.span_intervals([number])
        Request.new(**fields(number, blame: true), runs: runs(row, intervals, selection), lost: lost)
      end

      # The outermost span's name: the endpoint.
      def endpoint(number)
        row = nil
        256.times do
          row = row(number)
          break if row.parent.nil?

          number = row.parent
        end
        @data.text(row.name)
      end

      private

      def row(number) = Row.new(*@data.native.span_row(number))

      def fields(number, blame:)
        r = row(number)
        open = r.flags.anybits?(OPEN)
        info = r.thread && @data.threads[r.thread]
        {
          id: presence(r.request_id), kind: presence(r.kind), name: @data.text(r.name),
          start: Ring.time_text(@data.realtime(r.ring, r.begin_ns)), wall_ns: r.end_ns - r.begin_ns, cpu_ns: r.cpu_ns,
          running_ns: r.running_ns, gvl_wait_ns: r.gvl_wait_ns, blocked_ns: r.blocked_ns, gc_ns: r.gc_ns,
          allocations: open ? nil : r.allocations, status: STATUS.fetch(r.status, r.status), pid: @data.rings[r.ring].pid,
          tid: info&.tid, tags: tags(r), open: open, blame: blame ? blames(@data.native.span_intervals([number])) : [],
          trace_id: presence(r.trace_id), start_ns: @data.ring_time(r.ring, r.begin_ns),
          end_ns: open ? nil : @data.ring_time(r.ring, r.end_ns), parent: r.parent ? row(r.parent).id : 0
        }
      end

      def tags(row)
        @data.rings[row.ring].tags.merge(row.tags.to_h { |key, value| [@data.text(key), @data.text(value)] })
      end

      def presence(text)
        text = @data.text(text)
        text unless text.nil? || text.empty?
      end

      # By span name, thread and what it ran; the frames are those of the longest.
      def blames(intervals)
        merged = {}
        @data.native.blame(intervals, 1000).each do |thread, stack, span, ns|
          blame = blame(thread, stack, span, ns)
          key = [blame.span_name, blame.thread, blame.frames.last&.name]
          merged[key] = merged[key] ? Blame.new(**merged[key].to_h.slice(:span_name, :thread), ns: merged[key].ns + ns, frames: merged[key].frames) : blame
        end
        merged.values.sort_by { |blame| -blame.ns }.first(BLAME_ROWS)
      end

      def blame(thread, stack, span, ns)
        name = @data.thread_name(thread) || @data.threads[thread].tid.to_s
        Blame.new(span_name: span && endpoint(span), thread: name, ns: ns, frames: @data.frames(stack).last(BLAME_FRAMES))
      end

      # Consecutive from begin to end. Where no thread worked for the span (its fiber was suspended) it was
      # blocked; before the log begins nothing is known.
      def runs(row, intervals, selection)
        runs = []
        at = row.begin_ns
        pieces(intervals).each do |thread, start, duration, stack, state|
          finish = [start + duration, row.end_ns].min
          next if finish <= at

          at = idle(runs, row, at, start) if start > at
          runs << run(row, thread, at, finish, selection.frames(stack), STATES[state])
          at = finish
        end
        idle(runs, row, at, row.end_ns) if at < row.end_ns
        runs
      end

      def pieces(intervals)
        count, thread, start, duration, stack, state, = @data.native.segments(Selection.of_intervals(intervals))
        columns = [thread.unpack("L*"), start.unpack("Q*"), duration.unpack("Q*"), stack.unpack("L*"), state.unpack("C*")]
        count.zero? ? [] : columns.transpose.sort_by { |piece| piece[1] }
      end

      def run(row, thread, from, to, frames, state)
        if state == "gvl_wait"
          holder = @data.native.blame(@data.native.interval(thread, from, to), 1).first
          holder &&= blame(*holder)
        end
        Run.new(at_ns: @data.ring_time(row.ring, from), ns: to - from, state: state, frames: frames, holder: holder)
      end

      def idle(runs, row, from, to)
        first = @data.ring_rows[row.ring][:first]
        if from < first
          unseen = [to, first].min
          runs << Run.new(at_ns: @data.ring_time(row.ring, from), ns: unseen - from, state: "unknown", frames: [])
          from = unseen
        end
        runs << Run.new(at_ns: @data.ring_time(row.ring, from), ns: to - from, state: "blocked", frames: []) if to > from
        to
      end
    end
  end
end
