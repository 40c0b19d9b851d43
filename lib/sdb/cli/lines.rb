# frozen_string_literal: true

require_relative "analysis"

module Sdb
  module CLI
    # Time per line of one file.
    class Lines < Analysis
      summary "which lines of a file took the time"
      usage "[options] FILE [RING...]"
      examples "sdb lines app/models/user.rb         # a unique end of the path is enough",
               "sdb lines user.rb --metric cpu x.sdb # from this log"

      private

      def run(arguments)
        raise UsageError, "FILE is missing" if arguments.empty?

        file, *paths = arguments
        with_profile(paths) do |profile|
          answer = ask(profile, file)
          json? ? print_json(answer) : show(profile, answer)
        end
        0
      end

      # A relative name of a file that is there is tried as it was recorded, too: absolute.
      def ask(profile, file)
        profile.lines(file, metric: filters.metric, **filters.to_h)
      rescue FilterError
        absolute = File.expand_path(file)
        raise if absolute == file || !File.exist?(absolute)

        profile.lines(absolute, metric: filters.metric, **filters.to_h)
      end

      def show(profile, answer)
        heading(profile, @paths.short(answer.path), "#{filters.metric} #{Text.duration(answer.lines.sum(&:self_ns))} in its lines")
        out.puts
        source = source_of(answer.path)
        table = Table.new(terminal, [["self", :right], ["total", :right], ["line", :right], ["", :left]])
        answer.lines.each do |line|
          number, text = line.line.zero? ? ["?", ""] : [line.line, source[line.line - 1].to_s]
          table.row Text.duration(line.self_ns), Text.duration(line.total_ns), number, text.chomp.gsub("\t", "  ")
        end
        table.print(out)
      end

      # The file as it is here and now, where it is here.
      def source_of(path)
        File.file?(path) && File.size(path) < 16 << 20 ? File.readlines(path) : []
      rescue SystemCallError
        []
      end
    end
  end
end
