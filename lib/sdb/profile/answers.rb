# frozen_string_literal: true

require_relative "selection"
require_relative "span_answers"

module Sdb
  class Profile
    # The questions themselves. See Profile for the filters that each of them takes.
    module Answers
      # `sdb functions`
      #: (?metric: Symbol, **untyped) -> Functions ! FilterError
      def functions(metric: :wall, **filters)
        sums = data.native.sum_functions(select(filters).native, known(metric))
        Functions.new(metric: metric.to_s, **sums.slice(:total_ns, :threads, :samples, :unnamed_ns),
                      functions: function_times(sums[:functions]), lost: lost)
      end

      # `sdb lines FILE`. path: as recorded, or a unique end of it ("models/user.rb"); none matching: FilterError.
      #: (String, ?metric: Symbol, **untyped) -> Lines ! FilterError
      def lines(path, metric: :wall, **filters)
        path = recorded_path(path)
        columns = data.native.sum_lines(select(filters).native, known(metric), path)
        rows = columns[:line].unpack("L*").zip(columns[:self_ns].unpack("Q*"), columns[:total_ns].unpack("Q*")).map do |line, self_ns, total_ns|
          LineTime.new(line: line, self_ns: self_ns, total_ns: total_ns)
        end
        Lines.new(path: path, lines: rows, lost: lost)
      end

      # Paths in which time was spent, for completion and suggestions.
      #: (**untyped) -> Array[String]
      def source_paths(**filters)
        functions(**filters).functions.map(&:path).reject(&:empty?).uniq.sort
      end

      # `sdb threads`
      #: (**untyped) -> Threads ! FilterError
      def threads(**filters)
        rows = data.native.sum_threads(select(filters).unmarked)
        found = rows.each_with_index.filter_map { |row, number| thread_time(number, row) if row }
        Threads.new(threads: found, lost: lost)
      end

      # `sdb tree`. lines: true gives a node a line, false one per function. min_ns drops smaller nodes.
      #: (?metric: Symbol, ?lines: bool, ?min_ns: Integer, **untyped) -> Tree ! FilterError
      def tree(metric: :wall, lines: false, min_ns: 0, **filters)
        columns = data.native.sum_tree(select(filters).native, known(metric), lines)
        Tree.new(metric: metric.to_s, total_ns: columns[:total_ns].unpack1("Q"), roots: tree_nodes(columns, lines, min_ns), lost: lost)
      end

      # `sdb callers F`. function: name or Regexp.
      #: (String | Regexp, ?metric: Symbol, **untyped) -> Callers ! FilterError
      def callers(function, metric: :wall, **filters)
        numbers = functions_named(function)
        targets = "\0".b * data.functions.size
        numbers.each { |number| targets.setbyte(number, 1) }
        native = select(filters).native
        edges = data.native.sum_edges(native, known(metric), targets)
        nobody = data.functions[Native::Profile::NO_FRAMES_FUNCTION].name
        Callers.new(metric: metric.to_s, total_ns: edges[:total_ns], functions: target_times(numbers, edges, native, metric),
                    callers: function_times(edges[:callers]).reject { |f| f.name == nobody }.sort_by { |f| -f.total_ns },
                    callees: function_times(edges[:callees]).sort_by { |f| -f.total_ns }, lost: lost)
      end

      # `sdb export collapsed` without the formatting: yields (process label, thread label, frames root first,
      # Integer ns) for each distinct stack, in a stable order.
      #: (?metric: Symbol, **untyped) { (String, String, Array[Frame], Integer) -> void } -> void
      def each_stack(metric: :wall, **filters)
        return enum_for(:each_stack, metric: metric, **filters) unless block_given?

        selection = select(filters)
        cells = data.native.sum_cells(selection.native)
        budget = data.frame_budget(FrameBudget::ALL)
        cells[:thread].unpack("L*").zip(cells[:stack].unpack("L*"), cells[known(metric)].unpack("Q*")) do |thread, stack, ns|
          next if ns.zero?

          yield process_label(data.threads[thread].ring), thread_label(thread), shown_frames(stack, selection.marks, budget), ns
        end
      end

      # The text of `sdb export collapsed`. lines: true adds " path:line" to frames.
      #: (?metric: Symbol, ?lines: bool, **untyped) -> String
      def collapsed(metric: :wall, lines: false, **filters)
        sums = Hash.new(0)
        plain = ->(word) { word.tr(";", ":").gsub(/\p{Cc}/, " ") }
        words = Hash.new { |known, f| known[f] = plain.call(lines && f.line.positive? ? "#{f.name} #{f.path}:#{f.line}" : f.name) }.compare_by_identity
        each_stack(metric: metric, **filters) do |process, thread, frames, ns|
          sums[[plain.call(process), plain.call(thread), *words.values_at(*frames)].join(";")] += ns
        end
        sums.sort.filter_map { |text, ns| "#{text} #{(ns / 1000.0).round}\n" if ns >= 500 }.join
      end

      # All spans in order of their start. roots: true leaves out spans inside others. Blame is empty here.
      #: (?roots: bool, **untyped) -> Spans ! FilterError
      def spans(roots: false, **filters)
        Spans.new(spans: select(filters).spans(roots: roots).map { |number| span_answers.span(number) }, lost: lost)
      end

      # `sdb slow`: root spans, slowest first, with blame. metric: by what they are sorted. limit: nil for all.
      #: (?limit: Integer?, ?metric: Symbol, **untyped) -> Spans ! FilterError
      def slow(limit: 20, metric: :wall, **filters)
        numbers = select(filters).spans(roots: true)
        walls = data.native.span_times[:wall]
        worth = metric == :wall ? ->(n) { walls.unpack1("Q", offset: n * 8) } : ->(n) { span_answers.span(n).public_send(:"#{metric}_ns") }
        # max_by makes room for as many as it is asked for.
        limit = [limit || numbers.size, numbers.size].min
        slowest = numbers.map { |number| [worth.call(number), number] }.max_by(limit) { |ns, number| [ns, -number] }
        Spans.new(spans: slowest.map { |_, number| span_answers.span(number, blame: true) }, lost: lost)
      end

      # `sdb request ID`: the span with that request id (the longest when several have it) and its runs, in which
      # hide and only_app leave frames out; FilterError when there is none.
      #: (String, **untyped) -> Request ! FilterError
      def request(id, **filters)
        selection = select(filters.merge(request: id))
        numbers = selection.spans(roots: false)
        raise FilterError, "no request #{id} in these logs (`sdb slow` lists some)" if numbers.empty?

        walls = data.native.span_times[:wall]
        span_answers.request(numbers.max_by { |number| walls.unpack1("Q", offset: number * 8) }, selection, lost)
      end

      # `sdb stacks`: what every thread did at an instant (as to:), default each log's last one known. Filters of
      # spans, tags and states leave out threads that were not in them then; focus, hide and only_app as everywhere.
      #: (?at: Integer | Time | String | nil, ?pid: Integer?, **untyped) -> Stacks
      def stacks(at: nil, **filters)
        selection = select(filters)
        instant = at ? [Instants.new(data).window(nil, at).last, data.end_ns].min : @part && @part[:to]
        budget = data.frame_budget(FrameBudget::STACKS)
        threads = data.threads.each_index.filter_map { |number| thread_stack(number, instant, selection, budget) if selection.thread?(number) }
        Stacks.new(at: stacks_time(instant), threads: threads)
      end

      # Whether a thread may have been in that state since before the part of the log that was read.
      #: (Stacks) -> bool
      def cut_short?(stacks)
        firsts = data.rings.each_with_index.to_h { |ring, n| [ring.pid, data.ring_time(n, data.ring_rows[n][:first])] }
        stacks.threads.any? { |thread| thread.since_ns && thread.since_ns <= firsts.fetch(thread.pid, 0) }
      end

      # Yields each stretch of a thread on one stack in one state, thread by thread in order of time.
      #: (**untyped) { (Segment) -> void } -> void
      def each_segment(**filters)
        return enum_for(:each_segment, **filters) unless block_given?

        selection = select(filters)
        columns = data.native.segments(selection.native)
        formats = { thread: "L*", start_ns: "Q*", duration_ns: "Q*", stack: "L*", state: "C*", cpu_ns: "Q*" }
        budget = data.frame_budget(FrameBudget::ALL)
        formats.map { |name, format| columns[name].unpack(format) }.transpose.each do |thread, start, duration, stack, state, cpu|
          info = data.threads[thread]
          yield Segment.new(thread: info, start_ns: data.ring_time(info.ring, start), duration_ns: duration,
                            state: STATES[state], cpu_ns: cpu, frames: shown_frames(stack, selection.marks, budget))
        end
      end

      # The same in bulk, as packed native-endian columns for exporters and the HTML report:
      # {count:, thread: u32, start_ns: u64, duration_ns: u64, stack: u32, state: u8, cpu_ns: u64}. thread counts in
      # thread_infos, stack in dictionaries; start_ns is on the common line (less base_ns(ring): ring time).
      # focus applies, hide and only_app do not.
      #: (**untyped) -> Hash[Symbol, String | Integer]
      def segment_columns(**filters)
        data.native.segments(select(filters).native)
      end

      # Self time per thread and stack under each metric, packed: {count:, thread: u32, stack: u32, wall: u64,
      # cpu: u64, gvl_wait: u64, blocked: u64, gc: u64}; numbers as in segment_columns.
      #: (**untyped) -> Hash[Symbol, String | Integer]
      def cell_columns(**filters)
        data.native.sum_cells(select(filters).native)
      end

      # The dictionaries behind the columns:
      # {stack_parent: u32s, stack_frame: u32s, frame_function: u32s, frame_line: u32s,
      #  functions: [[name, path, line, kind], ...]}; stack 0 is the root that no segment has; parents come before
      # children. kind: 1 Ruby, 2 C, 0 a stand-in such as "(unknown)".
      #: () -> Hash[Symbol, untyped]
      def dictionaries
        stacks = data.native.stacks
        frames = data.native.frames
        { stack_parent: stacks[:parent], stack_frame: stacks[:frame], frame_function: frames[:function], frame_line: frames[:line],
          functions: data.functions.map(&:to_a) }
      end

      private

      def select(filters) = Selection.new(data, part: @part, **filters)

      def span_answers = @span_answers ||= SpanAnswers.new(data)

      def known(metric)
        METRICS.find { |name| name == metric.to_sym } or raise FilterError, "no metric #{metric} (there are #{METRICS.join(", ")})"
      end

      # columns: {self_ns:, total_ns:} per function
      def function_times(columns)
        times = columns[:self_ns].unpack("Q*").zip(columns[:total_ns].unpack("Q*"))
        rows = times.each_with_index.filter_map do |(self_ns, total_ns), number|
          data.function_time(number, self_ns, total_ns) unless total_ns.zero? && self_ns.zero?
        end
        rows.sort_by { |f| [-f.self_ns, -f.total_ns, f.name, f.path, f.line] }
      end

      def thread_time(number, row)
        info = data.threads[number]
        ThreadTime.new(pid: info.pid, tid: info.tid, name: data.thread_name(number), states: info.states,
                       start_ns: data.ring_time(info.ring, row[:first]), end_ns: data.ring_time(info.ring, row[:last]),
                       **row.slice(:running_ns, :gvl_wait_ns, :blocked_ns, :gc_ns, :cpu_ns, :unknown_ns))
      end

      def recorded_path(path)
        known = data.functions.map(&:path).uniq
        return path if known.include?(path)

        matches = known.select { |candidate| candidate.end_with?("/#{path.delete_prefix("/")}") }
        return matches.first if matches.size == 1

        raise FilterError, "#{path} is not in these logs" if matches.empty?

        raise FilterError, "#{path} could be #{matches.first(5).join(", ")}"
      end

      # Children come after their parents: made from the last to the first, each finds its own children made.
      def tree_nodes(columns, lines, min_ns)
        parents, functions, node_lines = columns.values_at(:parent, :function, :line).map { |column| column.unpack("L*") }
        self_ns, total_ns = columns.values_at(:self_ns, :total_ns).map { |column| column.unpack("Q*") }
        children = Hash.new { |hash, key| hash[key] = [] }
        (parents.size - 1).downto(1) do |i|
          own = children.delete(i) || []
          next if total_ns[i] < min_ns

          f = data.functions[functions[i]]
          children[parents[i]] << TreeNode.new(name: f.name, path: f.path, line: lines ? node_lines[i] : f.line, self_ns: self_ns[i],
                                               total_ns: total_ns[i], children: own.sort_by { |n| [-n.total_ns, n.name] })
        end
        children[0].sort_by { |n| [-n.total_ns, n.name] }
      end

      def functions_named(wanted)
        numbers = data.functions.each_index.select do |n|
          wanted.is_a?(Regexp) ? data.functions[n].name.match?(wanted) : data.functions[n].name == wanted.to_s
        end
        raise FilterError, "no function #{wanted.inspect} in these logs#{similar_functions(wanted)}" if numbers.empty?

        numbers
      end

      def similar_functions(wanted)
        return "" if wanted.is_a?(Regexp)

        word = wanted.to_s.downcase
        names = data.functions.map(&:name).select { |name| name.downcase.include?(word) }.uniq.sort.first(5)
        names.empty? ? "" : " (there are #{names.join(", ")})"
      end

      # Several functions: each with its own times, which need not add up.
      def target_times(numbers, edges, native, metric)
        return [data.function_time(numbers.first, edges[:self_ns], edges[:target_ns])] if numbers.size == 1

        times = data.native.sum_functions(native, known(metric))[:functions].transform_values { |column| column.unpack("Q*") }
        numbers.map { |n| data.function_time(n, times[:self_ns][n], times[:total_ns][n]) }.reject { |f| f.total_ns.zero? }
               .sort_by { |f| -f.total_ns }
      end

      # "shop 4242", "4242"
      def process_label(ring)
        [data.rings[ring].text["service"], data.rings[ring].pid].compact.join(" ")
      end

      def thread_label(number) = data.thread_name(number) || data.threads[number].tid.to_s

      def shown_frames(stack, marks, budget)
        shown = data.frames(stack, marks: marks, named: true, budget: budget)
        shown.empty? ? [data.frame(Native::Profile::NO_FRAMES_FUNCTION, 0)] : shown
      end

      def thread_stack(number, instant, selection, budget)
        info = data.threads[number]
        row = data.ring_rows[info.ring]
        at = instant || row[:last]
        found = data.native.stack_at(number, at)
        return if found.nil? || (info.end_ns < data.ring_time(info.ring, at) && !instant)
        return unless selection.covers?(number, at, found[:state], found[:stack])

        span = data.native.span_at(number, at)
        ThreadStack.new(pid: info.pid, tid: info.tid, name: data.thread_name(number), state: STATES[found[:state]],
                        since_ns: data.ring_time(info.ring, found[:since]), span: span && data.text(data.native.span_name(span)),
                        frames: selection.frames(found[:stack], budget))
      end

      def stacks_time(instant)
        ring = data.ring_rows.each_index.max_by { |n| data.ring_rows[n][:last] } or return
        Ring.time_text(data.realtime(ring, instant || data.ring_rows[ring][:last]))
      end
    end
  end
end
