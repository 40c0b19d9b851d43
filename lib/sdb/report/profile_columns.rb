# frozen_string_literal: true

require_relative "../shared/categories"
require_relative "../shared/paths"
require_relative "facts"
require_relative "flame_data"

module Sdb
  module Report
    # FlameData out of a profile: only what its cells need of its dictionaries, and without the lines.
    #
    # Consumes Profile#cell_columns, #dictionaries, #thread_infos, #functions, and what Facts asks for.
    class ProfileColumns
      #: (Profile, **untyped filters) -> void
      def initialize(profile, **filters)
        @profile = profile
        @filters = filters
        @words = profile.dictionaries
        @parents = @words[:stack_parent].unpack("L*")
        @frames = @words[:stack_frame].unpack("L*")
        @frame_functions = @words[:frame_function].unpack("L*")
      end

      #: () -> FlameData
      def data
        packed = @profile.cell_columns(**@filters)
        cells = { thread: packed[:thread].unpack("L*"), stack: packed[:stack].unpack("L*") }
        FlameData::METRICS.each { |metric| cells[metric] = packed[metric].unpack("Q*") }
        shrunk = stacks(cells[:stack])
        FlameData.new(stacks: shrunk[:stacks], funcs: functions(shrunk[:functions]), strings: @strings.keys,
                      cells: columns(cells, shrunk[:number]), threads: threads,
                      facts: Facts.new(@profile).to_h(@profile.functions(metric: :wall, **@filters)))
      end

      private

      # Stacks that differ in lines only are one here, and those without time under them are left out.
      def stacks(with_time)
        used = Array.new(@parents.size, false)
        with_time.each { |stack| used[stack] = true }
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
        paths = Paths.of(@profile.rings)
        @strings = {}
        string = ->(text) { @strings[text] ||= @strings.size }
        rows = used.map { |function| @words[:functions][function] }
        {
          name: rows.map { |name, _, _| string.call(name.to_s) },
          path: rows.map { |_, path, _| string.call(path) unless path.nil? || path.empty? },
          place: rows.map { |_, path, _| string.call(paths.short(path)) unless path.nil? || path.empty? },
          line: rows.map { |_, _, line| line.to_i },
          category: rows.map { |name, path, _| categories.of(name.to_s, path) }
        }
      end

      # The cells of stacks that have become one are one too. In the order of the stacks: neighbouring numbers
      # that differ little compress well.
      def columns(cells, number)
        metrics = FlameData::METRICS.map { |metric| cells[metric] }
        merged = {}
        cells[:stack].each_with_index do |stack, i|
          sum = (merged[(number[stack] << 32) | cells[:thread][i]] ||= [0] * metrics.size)
          metrics.each_with_index { |column, m| sum[m] += column[i] }
        end
        rows = merged.sort
        { stack: rows.map { |key, _| key >> 32 }, thread: rows.map { |key, _| key & 0xffff_ffff } }.merge(
          FlameData::METRICS.each_with_index.to_h { |metric, m| [metric, rows.map { |_, sum| sum[m] }] }
        )
      end

      def threads
        @profile.thread_infos.map { |thread| { pid: thread.pid, tid: thread.tid, name: thread.name } }
      end
    end
  end
end
