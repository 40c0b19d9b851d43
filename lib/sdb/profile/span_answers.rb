# frozen_string_literal: true

require_relative "selection"

module Sdb
  class Profile
    # Makes Span, Request and Blame of span numbers.
    class SpanAnswers
      BLAME_FRAMES = 5
      BLAME_ROWS = 10
      STATUS = { 0 => nil, 1 => "ended", 2 => "raised" }.freeze

      Row = Struct.new(:ring, :thread, :parent, :id, :open, :begin_ns, :end_ns, :kind, :name, :request_id, :trace_id,
                       :status, :cpu_ns, :running_ns, :gvl_wait_ns, :blocked_ns, :gc_ns, :allocations, :tags, keyword_init: true)

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
        @data.text(@data.native.span_name(@data.native.span_root(number)))
      end

      private

      def row(number) = Row.new(**@data.native.span_row(number))

      def fields(number, blame:)
        r = row(number)
        open = r.open
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
        @data.native.blame(intervals, 1000).each do |row|
          blame = blame(row)
          key = [blame.span_name, blame.thread, blame.frames.last&.name]
          known = merged[key]
          merged[key] = known ? Blame.new(span_name: known.span_name, thread: known.thread, ns: known.ns + blame.ns, frames: known.frames) : blame
        end
        merged.values.sort_by { |blame| -blame.ns }.first(BLAME_ROWS)
      end

      # row: as Native::Profile#blame has it
      def blame(row)
        name = @data.thread_name(row[:thread]) || @data.threads[row[:thread]].tid.to_s
        Blame.new(span_name: row[:span] && endpoint(row[:span]), thread: name, ns: row[:ns],
                  frames: @data.frames(row[:stack], newest: BLAME_FRAMES))
      end

      # Consecutive from begin to end. Where no thread worked for the span (its fiber was suspended) it was
      # blocked; before the log begins nothing is known.
      def runs(row, intervals, selection)
        runs = []
        at = row.begin_ns
        budget = @data.frame_budget(FrameBudget::RUNS)
        parts = parts(row, intervals)
        holders = holders(parts)
        parts.each_with_index do |part, i|
          at = idle(runs, row, at, part.from) if part.from > at
          runs << Run.new(at_ns: @data.ring_time(row.ring, part.from), ns: part.to - part.from, state: STATES[part.state],
                          frames: selection.frames(part.stack, budget), holder: holders[i])
          at = part.to
        end
        idle(runs, row, at, row.end_ns) if at < row.end_ns
        runs
      end

      Part = Struct.new(:thread, :from, :to, :stack, :state)
      private_constant :Part

      # What threads did for the span, one after the other and inside of it.
      def parts(row, intervals)
        at = row.begin_ns
        pieces(intervals).filter_map do |thread, start, duration, stack, state|
          from = [start, at].max
          to = [start + duration, row.end_ns].min
          next if to <= from

          at = to
          Part.new(thread, from, to, stack, state)
        end
      end

      def pieces(intervals)
        columns = @data.native.segments(Selection.of_intervals(intervals))
        formats = { thread: "L*", start_ns: "Q*", duration_ns: "Q*", stack: "L*", state: "C*" }
        columns[:count].zero? ? [] : formats.map { |name, format| columns[name].unpack(format) }.transpose.sort_by { |piece| piece[1] }
      end

      # { index of a part that waited for the GVL => Blame or nil }
      def holders(parts)
        waits = parts.each_index.select { |i| STATES[parts[i].state] == "gvl_wait" }
        return {} if waits.empty?

        intervals = waits.map { |i| @data.native.interval(parts[i].thread, parts[i].from, parts[i].to) }.join
        waits.zip(@data.native.holders(intervals)).to_h { |i, row| [i, row && blame(row)] }
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
