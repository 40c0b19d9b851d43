# frozen_string_literal: true

require "stringio"
require_relative "analysis"

module Sdb
  module CLI
    # The flame graph as one HTML file.
    class Flamegraph < Analysis
      summary "the flame graph: one HTML file that opens anywhere, offline"
      usage "[options] [RING...]"
      examples "sdb flamegraph                     # to flamegraph.html",
               "sdb flamegraph -o slow.html --percentile 99",
               "sdb flamegraph --request ID        # one request",
               "sdb flamegraph --metric cpu -o - > cpu.html"

      private

      def own_options(parser)
        parser.on("-o", "--output FILE", "where to (flamegraph.html; - for stdout)") { |v| @output = v }
        parser.on("--title TEXT", "what the page is called") { |v| @title = v }
      end

      def run(arguments)
        require_relative "../report/flamegraph"
        with_profile(arguments) do |profile|
          path = @output || "flamegraph.html"
          raise UsageError, "--json and -o - both want stdout" if json? && path == "-"

          html = Progress.new(err).during("drawing") { render(profile) }
          path == "-" ? out.write(html) : save(path, html)
        end
        0
      end

      def render(profile)
        page = StringIO.new(String.new(encoding: Encoding::UTF_8))
        Report::FlameGraph.render(profile, page, title: @title || title(profile), metric: filters.metric, **filters.to_h)
        page.string
      end

      def title(profile)
        names = profile.rings.map { |ring| ring.text["service"] || "pid #{ring.pid}" }.uniq
        "#{names.first(3).join(", ")}#{" ..." if names.size > 3}: #{filters.metric}"
      end

      def save(path, html)
        File.write(path, html)
        json? ? print_json({ schema: 1, path: File.expand_path(path), bytes: html.bytesize }) : out.puts(path)
      end
    end
  end
end
