# frozen_string_literal: true

require_relative "../errors"
require_relative "../shared/categories"
require_relative "data"
require_relative "instants"

module Sdb
  class Profile
    # The filters of a question, checked and made into what the native profile takes. Immutable.
    #
    # Who is concerned (pid, thread) becomes a byte per thread; spans (endpoint, request, trace, min_duration,
    # percentile) and tags become intervals of threads; function patterns become a byte per function, matched
    # here once per function and not per sample.
    class Selection
      NAMES = %i[from to last pid thread endpoint request trace tag state min_duration percentile focus hide only_app
                 own].freeze
      FOCUS = 1 # Native::Profile::MARK_FOCUS and MARK_HIDE
      HIDE = 2
      ALL_STATES = (1 << STATES.size) - 1

      # @param data [Data]
      # part: what the profile is a part of, see Profile#within.
      # filters: see Profile. own: true takes sdb's own thread in.
      def initialize(data, part: nil, **filters)
        unknown = filters.keys - NAMES
        raise FilterError, "unknown filter #{unknown.join(", ")} (there are #{NAMES.join(", ")})" unless unknown.empty?

        @data = data
        @filters = filters.compact
        @instants = Instants.new(data)
        @part = part || {}
        @from, @to = clamp(*range)
        @threads = thread_mask
      end

      attr_reader :from, :to

      # As the native questions want it.
      #: () -> Hash[Symbol, untyped]
      def native
        @native ||= { from: from, to: to, threads: @threads, intervals: intervals, states: states, marks: marks,
                      focus: @filters.key?(:focus) }.freeze
      end

      # The same without function patterns.
      def unmarked
        @unmarked ||= native.merge(marks: nil, focus: false).freeze
      end

      # Only these intervals of time, in all states and functions.
      def self.of_intervals(intervals)
        { from: 0, to: nil, threads: nil, intervals: intervals, states: ALL_STATES, marks: nil, focus: false }.freeze
      end

      def thread?(number) = @threads.getbyte(number) == 1

      # A byte per function: HIDE where its frames are left out, FOCUS where it keeps stacks. nil without such filters.
      #: () -> String?
      def marks
        return @marks if defined?(@marks)

        @marks = function_marks
      end

      # Whether what a thread did at an instant passes: spans, tags, state and focus.
      #: (Integer, Integer, Integer, Integer) -> bool
      def covers?(thread, at, state, stack)
        states.anybits?(1 << state) && (native[:intervals].nil? || @data.native.inside?(native[:intervals], thread, at)) &&
          (!@filters.key?(:focus) || focused?(stack))
      end

      # Frames of a stack without what is hidden, root first.
      #: (Integer, FrameBudget) -> Array[Frame]
      def frames(stack, budget) = @data.frames(stack, marks: marks, budget: budget)

      # Numbers of the spans that the span filters and tags name, by begin. roots: nil lets the filters decide:
      # durations and percentiles are of root spans, unless an endpoint, request or trace is named.
      #: (?roots: bool?) -> Array[Integer]
      def spans(roots: nil)
        named = %i[endpoint request trace].any? { |name| @filters.key?(name) }
        roots = !named if roots.nil?
        @data.native.spans_find({ names: endpoint_names, request: @filters[:request]&.to_s, trace: @filters[:trace]&.to_s,
                                  tags: span_tags, roots: roots, min_ns: min_duration, percentile: percentile,
                                  from: from, to: to, threads: span_threads })
      end

      private

      def range
        from, to = @instants.window(*@filters.values_at(:from, :to))
        if @filters.key?(:last)
          raise FilterError, "give last or from, not both" if @filters.key?(:from)

          from = [(to || @part[:to] || @data.end_ns) - Instants.duration(@filters[:last]), 0].max
        end
        [from, to]
      end

      def clamp(from, to)
        return [from, to] if @part.empty?

        from = [from, @part[:from]].max
        to = [to, @part[:to]].compact.min
        [to ? [from, to].min : from, to]
      end

      def thread_mask
        pids = Array(@filters[:pid]).map { |pid| Integer(pid, exception: false) || raise(FilterError, "not a pid: #{pid.inspect}") }
        mask = @data.threads.each_with_index.map do |info, number|
          if (@filters[:own] || !info.own) && (pids.empty? || pids.include?(info.pid)) &&
             named?(@part[:thread], info, number) && named?(@filters[:thread], info, number)
            1
          else
            0
          end
        end
        check_found(mask, pids)
        mask.pack("C*")
      end

      def named?(wanted, info, number)
        return true if wanted.nil?

        Array(wanted).any? { |one| one.is_a?(Integer) ? info.tid == one : [@data.thread_name(number), info.tid.to_s].include?(one.to_s) }
      end

      def check_found(mask, pids)
        return if mask.include?(1) || @data.threads.empty?

        missing = pids - @data.rings.map(&:pid)
        raise FilterError, "no process #{missing.join(", ")} in these logs (there are #{@data.rings.map(&:pid).uniq.join(", ")})" unless missing.empty?
        return unless @filters[:thread]

        names = @data.threads.each_index.filter_map { |n| @data.thread_name(n) }.uniq.first(10)
        raise FilterError, "no thread #{@filters[:thread]} in these logs (there are #{names.join(", ")})"
      end

      # Whether a function in focus is on the stack.
      def focused?(stack)
        depth = @data.native.stack_depth(stack)
        @data.native.stack_frames(stack, depth, depth).any? { |function, _| marks.getbyte(function).anybits?(FOCUS) }
      end

      def states
        wanted = @filters[:state] or return ALL_STATES
        names = wanted.is_a?(Array) ? wanted.map(&:to_s) : wanted.to_s.split(",").map(&:strip)
        names.sum do |name|
          index = STATES.index(name) or raise FilterError, "no state #{name} (there are #{STATES.join(", ")})"
          1 << index
        end
      end

      # nil: no condition on spans or tags.
      def intervals
        parts = []
        parts << @data.native.span_intervals(spans_named) if span_filters?
        tags.each { |key, value| parts << tagged(key, value) }
        parts.reduce { |left, right| @data.native.intersect(left, right) }
      end

      # That no span at all has the id is an answer of its own; that none of that id was slow enough is not.
      def spans_named
        numbers = spans
        id = %i[request trace].find { |name| @filters.key?(name) }
        return numbers if id.nil? || numbers.any?

        ids = { request: @filters[:request]&.to_s, trace: @filters[:trace]&.to_s }
        return numbers if @data.native.spans_find({ tags: [], min_ns: 0, from: 0, **ids }).any?

        raise FilterError, "no #{id} #{@filters[id]} in these logs"
      end

      def span_filters?
        %i[endpoint request trace min_duration percentile].any? { |name| @filters.key?(name) }
      end

      # Spans and threads with the tag; all threads of a process that was started with it.
      def tagged(key, value)
        intervals = @data.native.tag_intervals(key, value)
        rings = rings_tagged(key, value)
        return intervals if rings.empty?

        whole = @data.threads.each_index.select { |n| rings.include?(@data.threads[n].ring) }
                     .map { |n| @data.native.interval(n, 0, (1 << 64) - 1) }
        @data.native.normalize([intervals, *whole].join)
      end

      def rings_tagged(key, value)
        @data.rings.each_index.select { |n| @data.rings[n].tags[key] == value }
      end

      def tags
        @tags ||= [@filters[:tag]].flatten(1).compact.flat_map do |tag|
          next tag.map { |key, value| [key.to_s, value.to_s] } if tag.is_a?(Hash)

          key, value = tag.to_s.split("=", 2)
          raise FilterError, "not k=v: #{tag}" if value.nil? || key.empty?

          [[key, value]]
        end
      end

      # Tags of whole processes are no tags of their spans: those leave by their threads.
      def span_tags
        tags.reject { |key, value| rings_tagged(key, value).any? }
      end

      def span_threads
        rings = tags.map { |key, value| rings_tagged(key, value) }.reject(&:empty?).reduce(:&)
        return @threads if rings.nil?

        @data.threads.each_with_index.map { |info, n| thread?(n) && rings.include?(info.ring) ? 1 : 0 }.pack("C*")
      end

      def endpoint_names
        wanted = @filters[:endpoint] or return
        names = @data.native.span_names.transform_values { |name| @data.text(name) }
        numbers = names.select { |_, name| wanted.is_a?(Regexp) ? name.match?(wanted) : name == wanted.to_s }.keys
        return numbers unless numbers.empty?

        known = names.values.reject(&:empty?).sort.first(10)
        raise FilterError, "no endpoint #{wanted.inspect} in these logs#{" (there are #{known.join(", ")})" unless known.empty?}"
      end

      def min_duration
        @filters.key?(:min_duration) ? Instants.duration(@filters[:min_duration]) : 0
      end

      def percentile
        return unless @filters.key?(:percentile)

        value = Float(@filters[:percentile], exception: false)
        raise FilterError, "not a percentile: #{@filters[:percentile].inspect}" unless value&.between?(0, 100)

        value
      end

      def function_marks
        focus = pattern(:focus)
        hide = pattern(:hide)
        app = @filters[:only_app] ? Categories.new(@data.rings.map { |ring| ring.text["app_root"] }) : nil
        return unless focus || hide || app

        @data.functions.map do |function|
          mark = matches?(focus, function) ? FOCUS : 0
          mark |= HIDE if matches?(hide, function) || (app && !app.kept?(function.name, function.path))
          mark
        end.pack("C*")
      end

      # By name or path, as the flame graph's page does.
      def matches?(pattern, function)
        pattern && (pattern.match?(function.name) || pattern.match?(function.path))
      end

      def pattern(name)
        value = @filters[name]
        value.is_a?(String) ? Regexp.new(value) : value
      rescue RegexpError => e
        raise FilterError, "#{name}: #{e.message}"
      end
    end
  end
end
