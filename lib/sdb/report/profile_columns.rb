# frozen_string_literal: true

require_relative "categories"
require_relative "facts"
require_relative "flame_data"

module Sdb
  module Report
    # FlameData out of a profile: its segments summed up per thread and stack, and only what they need of its
    # dictionaries.
    #
    # Consumes Profile#segment_columns (thread: index into #thread_infos; state: index into Profile::STATES),
    # #dictionaries, #thread_infos, #functions, and what Facts asks for.
    class ProfileColumns
      STATE_METRICS = { 1 => :gvl_wait, 2 => :blocked, 3 => :gc }.freeze # running and unknown are wall only
      private_constant :STATE_METRICS

      #: (Profile, **untyped filters) -> void
      def initialize(profile, **filters)
        @profile = profile
        @filters = filters
        @words = profile.dictionaries
        @parents = numbers(@words[:stack_parent])
        @frames = numbers(@words[:stack_frame])
        @frame_functions = numbers(@words[:frame_function])
      end

      #: () -> FlameData
      def data
        cells = sums
        FlameData.new(stacks: (shrunk = stacks(cells))[:stacks], funcs: functions(shrunk[:functions]), strings: @strings.keys,
                      cells: columns(cells, shrunk[:number]), threads: threads,
                      facts: Facts.new(@profile).to_h(@profile.functions(metric: :wall, **@filters)))
      end

      private

      def numbers(packed)
        packed.is_a?(String) ? packed.unpack("L*") : packed
      end

      # { thread * stacks + stack => [wall, cpu, gvl_wait, blocked, gc] }
      def sums
        segments = @profile.segment_columns(**@filters)
        threads = numbers(segments[:thread])
        stacks = numbers(segments[:stack])
        durations = segments[:duration_ns].unpack("Q*")
        cpu = segments[:cpu_ns].unpack("Q*")
        states = segments[:state].unpack("C*")
        slot = STATE_METRICS.transform_values { |metric| FlameData::METRICS.index(metric) }
        found = {}
        segments[:count].times do |i|
          sum = (found[(threads[i] * @parents.size) + stacks[i]] ||= [0, 0, 0, 0, 0])
          sum[0] += durations[i]
          sum[1] += cpu[i]
          metric = slot[states[i]] and sum[metric] += durations[i]
        end
        found
      end

      # Stacks that differ in lines only are one here, and those without time under them are left out.
      def stacks(cells)
        used = Array.new(@parents.size, false)
        cells.each_key { |key| used[key % @parents.size] = true }
        (@parents.size - 1).downto(1) { |stack| used[@parents[stack]] = true if used[stack] }

        number = Array.new(@parents.size, -1)
        known = {}
        parent = []
        func = []
        functions = {}
        1.upto(@parents.size - 1) do |stack|
          next unless used[stack]

          up = number[@parents[stack]]
          function = @frame_functions[@frames[stack]]
          number[stack] = (known[[up, function]] ||= begin
            parent << up
            func << (functions[function] ||= functions.size)
            parent.size - 1
          end)
        end
        { stacks: { parent: parent, func: func }, functions: functions.keys, number: number }
      end

      def functions(used)
        categories = Categories.new(@profile.rings.map { |ring| ring.text["app_root"] })
        @strings = {}
        string = ->(text) { @strings[text] ||= @strings.size }
        rows = used.map { |function| @words[:functions][function] }
        {
          name: rows.map { |name, _, _| string.(name.to_s) },
          path: rows.map { |_, path, _| string.(path) unless path.nil? || path.empty? },
          line: rows.map { |_, _, line| line.to_i },
          category: rows.map { |name, path, _| categories.of(name.to_s, path) }
        }
      end

      def columns(cells, number)
        merged = Hash.new { |hash, key| hash[key] = [0, 0, 0, 0, 0] }
        cells.each do |key, times|
          thread, stack = key.divmod(@parents.size)
          sum = merged[[thread, number[stack]]]
          times.each_with_index { |ns, i| sum[i] += ns }
        end
        merged.delete_if { |(_, stack), times| stack.negative? || times.sum.zero? }
        # In the order of the stacks: neighbouring numbers that differ little compress well.
        rows = merged.sort_by { |(thread, stack), _| [stack, thread] }
        { thread: rows.map { |key, _| key[0] }, stack: rows.map { |key, _| key[1] } }.merge(
          FlameData::METRICS.each_with_index.to_h { |metric, i| [metric, rows.map { |_, times| times[i] }] }
        )
      end

      def threads
        @profile.thread_infos.map { |thread| { pid: thread.pid, tid: thread.tid, name: thread.name } }
      end
    end
  end
end
