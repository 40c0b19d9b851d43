# frozen_string_literal: true

require_relative "analysis"
require_relative "sources"

module Sdb
  module CLI
    # Time per line of one file.
    class Lines < Analysis
      summary "which lines of a file took the time"
      usage "[options] FILE [RING...]"
      examples "sdb lines app/models/user.rb         # the end of the path is enough if unique",
               "sdb lines user.rb --metric cpu x.sdb # from this log",
               "sdb lines user.rb --source ~/shop    # with the source from this checkout"
      details <<~TEXT
        The source is shown next to the times for files below the current directory and for this Ruby's library and gems.
        A log can name any file, so no others are opened unless you allow their directory with --source.
      TEXT

      private

      def own_options(parser)
        parser.on("--source DIR", "show source only from below DIR, which may be another checkout of the app") do |dir|
          (@source_dirs ||= []) << dir
        end
      end

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
        source = Sources.new(@source_dirs, roots: profile.rings.filter_map { |ring| ring.text["app_root"] }).lines(answer.path)
        table = Table.new(terminal, [["self", :right], ["total", :right], ["line", :right], ["", :left]])
        answer.lines.each do |line|
          number, text = line.line.zero? ? ["?", ""] : [line.line, source[line.line - 1].to_s]
          table.row Text.duration(line.self_ns), Text.duration(line.total_ns), number, text.chomp.gsub("\t", "  ")
        end
        table.print(out)
      end
    end
  end
end
