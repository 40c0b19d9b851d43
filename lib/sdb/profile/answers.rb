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
        total, samples, unnamed, threads, times = data.native.sum_functions(select(filters).native, metric_number(metric))
        Functions.new(metric: metric.to_s, total_ns: total, threads: threads, samples: samples, unnamed_ns: unnamed,
                      functions: function_times(times), lost: lost)
      end

      # `sdb lines FILE`. path: as recorded, or a unique end of it ("models/user.rb"); none matching: FilterError.
      #: (String, ?metric: Symbol, **untyped) -> Lines ! FilterError
      def lines(path, metric: :wall, **filters)
        path = recorded_path(path)
        times = data.native.sum_lines(select(filters).native, metric_number(metric), path).unpack("Q*")
        rows = times.each_slice(2).with_index.filter_map do |(self_ns, total_ns), line|
          LineTime.new(line: line, self_ns: self_ns, total_ns: total_ns) unless total_ns.zero? && self_ns.zero?
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
        rows = data.native.sum_threads(select(filters).unmarked).unpack("Q*").each_slice(8)
        found = rows.with_index.filter_map { |row, number| thread_time(number, row) unless row[6] > row[7] }
        Threads.new(threads: found, lost: lost)
      end

      # `sdb tree`. lines: true gives a node a line, false one per function. min_ns drops smaller nodes.
      #: (?metric: Symbol, ?lines: bool, ?min_ns: Integer, **untyped) -> Tree ! FilterError
      def tree(metric: :wall, lines: false, min_ns: 0, **filters)
        rows = unpack_tree(data.native.sum_tree(select(filters).native, metric_number(metric), lines))
        Tree.new(metric: metric.to_s, total_ns: rows[0][5], roots: tree_nodes(rows, lines, min_ns), lost: lost)
      end

      # `sdb callers F`. function: name or Regexp.
      #: (String | Regexp, ?metric: Symbol, **untyped) -> Callers ! FilterError
      def callers(function, metric: :wall, **filters)
        numbers = functions_named(function)
        targets = "\0".b * data.functions.size
        numbers.each { |number| targets.setbyte(number, 1) }
        native = select(filters).native
        total, self_ns, total_ns, callers, callees = data.native.sum_edges(native, metric_number(metric), targets)
        Callers.new(metric: metric.to_s, total_ns: total, functions: target_times(numbers, self_ns, total_ns, native, metric),
                    callers: function_times(callers).reject { |f| f.name == data.functions[1].name }.sort_by { |f| -f.total_ns },
                    callees: function_times(callees).sort_by { |f| -f.total_ns }, lost: lost)
      end

      # `sdb export collapsed` without the formatting: yields (process label, thread label, frames root first,
      # Integer ns) for each distinct stack, in a stable order.
      #: (?metric: Symbol, **untyped) { (String, String, Array[Frame], Integer) -> void } -> void
      def each_stack(metric: :wall, **filters)
        return enum_for(:each_stack, metric: metric, **filters) unless block_given?

        selection = select(filters)
        _, thread_column, stack_column, *metrics = data.native.sum_cells(selection.native)
        columns = [thread_column.unpack("L*"), stack_column.unpack("L*"), metrics[metric_number(metric)].unpack("Q*")]
        columns.transpose.each do |thread, stack, ns|
          next if ns.zero?

          yield process_label(data.threads[thread].ring), thread_label(thread), shown_frames(stack, selection.marks), ns
        end
      end

      # The text of `sdb export collapsed`. lines: true adds " path:line" to frames.
      #: (?metric: Symbol, ?lines: bool, **untyped) -> String
      def collapsed(metric: :wall, lines: false, **filters)
        sums = Hash.new(0)
        each_stack(metric: metric, **filters) do |process, thread, frames, ns|
          words = frames.map { |f| lines && f.line.positive? ? "#{f.name} #{f.path}:#{f.line}" : f.name }
          sums[[process, thread, *words].map { |word| word.tr(";", ":").gsub(/\p{Cc}/, " ") }.join(";")] += ns
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
        walls = data.native.span_times.last
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

        walls = data.native.span_times.last
        span_answers.request(numbers.max_by { |number| walls.unpack1("Q", offset: number * 8) }, selection, lost)
      end

      # `sdb stacks`: what every thread did at an instant (as to:), default each log's last one known. Filters of
      # spans, tags and states leave out threads that were not in them then; focus, hide and only_app as everywhere.
      #: (?at: Integer | Time | String | nil, ?pid: Integer?, **untyped) -> Stacks
      def stacks(at: nil, **filters)
        selection = select(filters)
        instant = at ? [Instants.new(data).window(nil, at).last, data.end_ns].min : @part && @part[:to]
        threads = data.threads.each_index.filter_map { |number| thread_stack(number, instant, selection) if selection.thread?(number) }
        Stacks.new(at: stacks_time(instant), threads: threads)
      end

      # Yields each stretch of a thread on one stack in one state, thread by thread in order of time.
      #: (**untyped) { (Segment) -> void } -> void
      def each_segment(**filters)
        return enum_for(:each_segment, **filters) unless block_given?

        selection = select(filters)
        _, *columns = data.native.segments(selection.native)
        columns.zip(%w[L* Q* Q* L* C* Q*]).map { |bytes, format| bytes.unpack(format) }
               .transpose.each do |thread, start, duration, stack, state, cpu|
          info = data.threads[thread]
          yield Segment.new(thread: info, start_ns: data.ring_time(info.ring, start), duration_ns: duration,
                            state: STATES[state], cpu_ns: cpu, frames: shown_frames(stack, selection.marks))
        end
      end

      # The same in bulk, as packed native-endian columns for exporters and the HTML report:
      # {count:, thread: u32, start_ns: u64, duration_ns: u64, stack: u32, state: u8, cpu_ns: u64}. thread counts in
      # thread_infos, stack in dictionaries; start_ns is on the common line (less base_ns(ring): ring time).
      # focus applies, hide and only_app do not.
      #: (**untyped) -> Hash[Symbol, String | Integer]
      def segment_columns(**filters)
        names = %i[count thread start_ns duration_ns stack state cpu_ns]
        names.zip(data.native.segments(select(filters).native)).to_h
      end

      # Self time per thread and stack under each metric, packed: {count:, thread: u32, stack: u32, wall: u64,
      # cpu: u64, gvl_wait: u64, blocked: u64, gc: u64}; numbers as in segment_columns.
      #: (**untyped) -> Hash[Symbol, String | Integer]
      def cell_columns(**filters)
        %i[count thread stack].concat(METRICS).zip(data.native.sum_cells(select(filters).native)).to_h
      end

      # The dictionaries behind the columns:
      # {stack_parent: u32s, stack_frame: u32s, frame_function: u32s, frame_line: u32s,
      #  functions: [[name, path, line, kind], ...]}; stack 0 is the root that no segment has; parents come before
      # children. kind: 1 Ruby, 2 C, 0 a stand-in such as "(unknown)".
      #: () -> Hash[Symbol, untyped]
      def dictionaries
        parents, tops = data.native.stacks
        functions, lines = data.native.frames
        { stack_parent: parents, stack_frame: tops, frame_function: functions, frame_line: lines,
          functions: data.functions.map(&:to_a) }
      end

      private

      def select(filters) = Selection.new(data, part: @part, **filters)

      def span_answers = @span_answers ||= SpanAnswers.new(data)

      def metric_number(metric)
        METRICS.index(metric.to_sym) or raise FilterError, "no metric #{metric} (there are #{METRICS.join(", ")})"
      end

      def function_times(packed)
        rows = packed.unpack("Q*").each_slice(2).with_index.filter_map do |(self_ns, total_ns), number|
          data.function_time(number, self_ns, total_ns) unless total_ns.zero? && self_ns.zero?
        end
        rows.sort_by { |f| [-f.self_ns, -f.total_ns, f.name, f.path, f.line] }
      end

      def thread_time(number, row)
        info = data.threads[number]
        running, gvl_wait, blocked, gc, unknown, cpu, first, last = row
        ThreadTime.new(pid: info.pid, tid: info.tid, name: data.thread_name(number), start_ns: data.ring_time(info.ring, first),
                       end_ns: data.ring_time(info.ring, last), running_ns: running, gvl_wait_ns: gvl_wait, blocked_ns: blocked,
                       gc_ns: gc, cpu_ns: cpu, unknown_ns: unknown, states: info.states)
      end

      def recorded_path(path)
        known = data.functions.map(&:path).uniq
        return path if known.include?(path)

        matches = known.select { |candidate| candidate.end_with?("/#{path.delete_prefix("/")}") }
        return matches.first if matches.size == 1

        raise FilterError, "#{path} is not in these logs" if matches.empty?

        raise FilterError, "#{path} could be #{matches.first(5).join(", ")}"
      end

      def unpack_tree(packed)
        packed.unpack("Q*").each_slice(4).map do |a, b, self_ns, total_ns|
          [a & 0xffff_ffff, a >> 32, b & 0xffff_ffff, 0, self_ns, total_ns]
        end
      end

      # Children come after their parents: made from the last to the first, each finds its own children made.
      def tree_nodes(rows, lines, min_ns)
        children = Hash.new { |hash, key| hash[key] = [] }
        (rows.size - 1).downto(1) do |i|
          parent, function, line, _, self_ns, total_ns = rows[i]
          own = children.delete(i) || []
          next if total_ns < min_ns

          f = data.functions[function]
          children[parent] << TreeNode.new(name: f.name, path: f.path, line: lines ? line : f.line, self_ns: self_ns,
                                           total_ns: total_ns, children: own.sort_by { |n| [-n.total_ns, n.name] })
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
      def target_times(numbers, self_ns, total_ns, native, metric)
        return [data.function_time(numbers.first, self_ns, total_ns)] if numbers.size == 1

        times = data.native.sum_functions(native, metric_number(metric)).last.unpack("Q*")
        numbers.map { |n| data.function_time(n, times[n * 2], times[n * 2 + 1]) }.reject { |f| f.total_ns.zero? }
               .sort_by { |f| -f.total_ns }
      end

      # "shop 4242", "4242"
      def process_label(ring)
        [data.rings[ring].text["service"], data.rings[ring].pid].compact.join(" ")
      end

      def thread_label(number) = data.thread_name(number) || data.threads[number].tid.to_s

      def shown_frames(stack, marks)
        return data.frames(stack, named: true) if marks.nil?

        shown = data.shown_frames(stack, marks, named: true)
        shown.empty? ? [data.frame(1, 0)] : shown
      end

      def thread_stack(number, instant, selection)
        info = data.threads[number]
        row = data.ring_rows[info.ring]
        at = instant || row[:last]
        stack, state, since = data.native.stack_at(number, at)
        return if stack.nil? || (info.end_ns < data.ring_time(info.ring, at) && !instant)
        return unless selection.covers?(number, at, state, stack)

        span = data.native.span_at(number, at)
        ThreadStack.new(pid: info.pid, tid: info.tid, name: data.thread_name(number), state: STATES[state],
                        since_ns: data.ring_time(info.ring, since), span: span && data.text(data.native.span_row(span)[8]),
                        frames: selection.frames(stack))
      end

      def stacks_time(instant)
        ring = data.ring_rows.each_index.max_by { |n| data.ring_rows[n][:last] } or return
        Ring.time_text(data.realtime(ring, instant || data.ring_rows[ring][:last]))
      end
    end
  end
end
