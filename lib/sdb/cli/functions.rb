# frozen_string_literal: true

require_relative "analysis"

module Sdb
  module CLI
    # Flat profile.
    class Functions < Analysis
      summary "which functions took the time, sorted by self time"
      usage "[options] [RING...]"
      examples "sdb functions                      # of all processes in the default directory",
               "sdb functions --last 10m           # in the last ten minutes",
               "sdb functions --metric cpu         # by CPU time",
               "sdb functions --endpoint UsersController#index --percentile 99",
               "sdb functions --only-app           # count gems and C code as the code that calls them"

      # The first `limit` of what these logs hold, as part of what another command has to say.
      #: (Array[String], Integer) -> void
      def brief(paths, limit)
        @limit = limit
        @brief = true
        run(paths)
      end

      private

      def own_options(parser)
        limit_option(parser, "functions", "a screenful; all when piped")
      end

      def run(arguments)
        with_profile(arguments) do |profile|
          answer = profile.functions(metric: filters.metric, **filters.to_h)
          json? ? print_json(limited(answer)) : show(profile, answer)
        end
        0
      end

      def limited(answer)
        document = answer.to_h
        document.merge(functions: document[:functions].first(limit_for(document[:functions].size, 0)))
      end

      def show(profile, answer)
        heading(profile, "#{answer.metric} #{Text.duration(answer.total_ns)}", Text.plural(answer.threads, "thread"),
                Text.plural(answer.samples, "sample"))
        return nothing if answer.total_ns.zero?

        out.puts
        table = Table.new(terminal, [["self", :right], ["", :right], ["total", :right], ["", :right], ["function", :left]])
        functions = answer.functions
        shown = limit_for(functions.size, [terminal.height - 6, 10].max)
        functions.first(shown).each do |f|
          table.row Text.duration(f.self_ns), Text.percent(f.self_ns, answer.total_ns), Text.duration(f.total_ns),
                    Text.percent(f.total_ns, answer.total_ns), place_cell(f)
        end
        table.print(out)
        more_note(functions.size - shown) unless @brief
      end
    end
  end
end
