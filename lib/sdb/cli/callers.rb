# frozen_string_literal: true

require_relative "analysis"

module Sdb
  module CLI
    # What calls a function, and what it calls.
    class Callers < Analysis
      summary "what calls a function and what it calls"
      usage "[options] FUNCTION [RING...]"
      examples "sdb callers 'User.search'     # this function",
               "sdb callers '/PG::.*exec/'    # every function that matches"

      private

      def own_options(parser)
        limit_option(parser, "callers and callees", "a screenful; all when piped")
      end

      def run(arguments)
        raise UsageError, "FUNCTION is missing" if arguments.empty?

        name, *paths = arguments
        with_profile(paths) do |profile|
          answer = profile.callers(pattern(name), metric: filters.metric, **filters.to_h)
          json? ? print_json(answer) : show(profile, answer)
        end
        0
      end

      def pattern(name)
        match = name.match(%r{\A/(.+)/(i?)\z}m) or return name
        Regexp.new(match[1], match[2] == "i" ? Regexp::IGNORECASE : 0)
      rescue RegexpError => e
        raise UsageError, "#{name}: #{e.message}"
      end

      def show(profile, answer)
        heading(profile, "#{answer.metric} #{Text.duration(answer.total_ns)} in all")
        { "function" => answer.functions, "called from" => answer.callers, "calls" => answer.callees }.each do |title, list|
          out.puts
          print_list(title, list, answer.total_ns)
        end
      end

      def print_list(title, list, whole)
        return out.puts("#{title}  #{terminal.paint("nothing seen", :dim)}") if list.empty?

        table = Table.new(terminal, [["total", :right], ["", :right], ["self", :right], [title, :left]])
        shown = limit_for(list.size, [terminal.height / 2 - 6, 8].max)
        list.first(shown).each do |f|
          table.row Text.duration(f.total_ns), Text.percent(f.total_ns, whole), Text.duration(f.self_ns),
                    place_cell(f)
        end
        table.print(out)
        more_note(list.size - shown)
      end
    end
  end
end
