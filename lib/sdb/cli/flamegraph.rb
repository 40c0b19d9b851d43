# frozen_string_literal: true

require_relative "analysis"

module Sdb
  module CLI
    # The flame graph as one HTML file; of one request its stack chart, which has a time line.
    class Flamegraph < Analysis
      summary "a flame graph in one HTML file that works offline"
      usage "[options] [RING...]"
      examples "sdb flamegraph                     # to flamegraph.html",
               "sdb flamegraph -o slow.html --percentile 99",
               "sdb flamegraph --request ID        # one request over time (with --metric: summed)",
               "sdb flamegraph --metric cpu -o - > cpu.html"

      private

      def own_options(parser)
        parser.on("-o", "--output FILE", "write to FILE (default: flamegraph.html; - for stdout)") { |v| @output = v }
        parser.on("--title TEXT", "title of the page") { |v| @title = v }
      end

      def run(arguments)
        with_profile(arguments) do |profile|
          path = @output || "flamegraph.html"
          filters.given?(:request) && !filters.metric_given? ? draw_one(profile, path) : draw(profile, path)
        end
        0
      end

      def draw_one(profile, path)
        ignore(:state, :focus)
        values = filters.to_h
        draw_request(profile, profile.request(values[:request], **values.except(:request)), path, @title)
      end

      def draw(profile, path)
        require_relative "../report/flamegraph"
        save_page(path) do |page|
          Report::FlameGraph.render(profile, page, title: @title || title(profile), metric: filters.metric, **filters.to_h)
        end
      end

      def title(profile)
        names = profile.rings.map { |ring| ring.text["service"] || "pid #{ring.pid}" }.uniq
        "#{names.first(3).join(", ")}#{" ..." if names.size > 3}: #{filters.metric}"
      end
    end
  end
end
