# frozen_string_literal: true

require_relative "../export"
require_relative "analysis"

module Sdb
  module CLI
    # Writes the profile in a format of other tools.
    class Export < Analysis
      summary "convert the profile for other tools"
      usage "[options] FORMAT [RING...]"
      examples "sdb export collapsed > stacks.txt        # for flamegraph.pl, speedscope, inferno",
               "sdb export collapsed --lines -o out.txt  # with line numbers, to a file"

      # Also what --help lists.
      def self.details(text = nil)
        return super if text

        formats = Sdb::Export.names.map { |name| "  #{name.ljust(12)} #{Sdb::Export.fetch(name)::SUMMARY}" }
        ["Formats:", *formats, "", LOGS].join("\n")
      end

      def initialize(out:, err:)
        super
        @values = {}
      end

      # Options of a format belong to it alone; the format is the first word that is one.
      def call(argv)
        @format = argv.find { |word| Sdb::Export.names.include?(word) }
        super
      end

      private

      def own_options(parser)
        parser.on("-o", "--output FILE", "write to FILE (default: stdout)") { |v| @output = v }
        names = @format ? [@format] : Sdb::Export.names
        names.each do |name|
          format = Sdb::Export.fetch(name)
          next unless format.respond_to?(:options)

          parser.separator "" unless @format
          parser.separator "With #{name}:" unless @format
          format.options(parser, @values)
        end
      end

      def run(arguments)
        name, *paths = arguments
        raise UsageError, "FORMAT is missing; choose one of #{Sdb::Export.names.join(", ")}" unless name

        format = Sdb::Export.fetch(name) or
          raise UsageError, "there is no format #{name}.#{Nearest.hint(name, Sdb::Export.names)}"
        raise UsageError, "--json writes to stdout: give -o FILE for the export" if json? && !@output

        with_profile(paths) { |profile| @output ? save(format, profile) : write(format, profile, out) }
        0
      end

      def write(format, profile, io)
        format.write(profile, io, metric: filters.metric, filters: filters.to_h, **@values)
      end

      def save(format, profile)
        File.open(@output, "wb") { |file| write(format, profile, file) }
        return out.puts(@output) unless json?

        print_json({ schema: 1, path: File.expand_path(@output), bytes: File.size(@output) })
      end
    end
  end
end
