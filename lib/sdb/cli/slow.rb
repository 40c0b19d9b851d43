# frozen_string_literal: true

require_relative "analysis"

module Sdb
  module CLI
    # The slowest requests and jobs.
    class Slow < Analysis
      summary "the slowest requests and jobs, what they spent their time on, and who held the GVL"
      usage "[options] [RING...]"
      examples "sdb slow                                  # the 20 slowest",
               "sdb slow --endpoint 'UsersController#index' --limit 5",
               "sdb slow --metric gvl_wait                # those that waited longest for the GVL",
               "sdb slow --last 10m --min-duration 300ms"

      details "allocs: objects allocated; on Ruby 3.1, by the whole process in that time.\n"

      HOLDERS = 2
      LEFT = %w[start id name].freeze
      LIMIT = 20

      private

      def own_options(parser)
        parser.on("--limit N", "at most N requests (default: #{LIMIT}; 0 for all)") { |v| @limit = whole(v, "--limit") }
      end

      def run(arguments)
        ignore(:state, :focus, :hide, :only_app)
        with_profile(arguments) do |profile|
          answer = slowest(profile)
          json? ? print_json({ schema: 1, spans: answer.map(&:to_h), lost: profile.lost }) : show(profile, answer)
        end
        0
      end

      def slowest(profile)
        limit = @limit || LIMIT
        profile.slow(limit: limit.zero? ? nil : limit, metric: filters.metric, **filters.to_h).spans
      end

      def show(profile, spans)
        return show_none(profile) if spans.empty?

        heading(profile, spans.size == 1 ? "the slowest" : "the #{spans.size} slowest", "in #{Text.duration(profile.duration_ns)}")
        out.puts
        summarize(spans)
        names = columns
        table = Table.new(terminal, names.map { |name| [name, LEFT.include?(name) ? :left : :right] })
        unknown = inferred?(profile)
        spans.each { |span| row(table, span, names, unknown) }
        table.print(out)
        return unless unknown

        out.puts terminal.paint("gvl_wait: Ruby 3.1 does not report who waits for the GVL; such time counts as blocked", :dim)
      end

      def show_none(profile)
        heading(profile, "no requests or jobs", "in #{Text.duration(profile.duration_ns)}")
        out.puts
        out.puts "With sdb/auto, requests and jobs of Rails, Rack, Sidekiq and Active Job are recorded automatically;"
        out.puts "for anything else use Sdb.span(\"name\") { }."
      end

      # One line an endpoint when there are several.
      def summarize(spans)
        by_name = spans.group_by(&:name)
        return if by_name.size < 2

        table = Table.new(terminal, [["worst", :right], ["among these", :right], ["endpoint", :left]])
        by_name.each { |name, list| table.row Text.duration(list.map(&:wall_ns).max), list.size, name }
        table.print(out)
        out.puts
      end

      # What there is room for; elsewhere than on a terminal all of it.
      def columns
        width = terminal.width || 1000
        names = %w[wall cpu gvl_wait blocked gc allocs status start id name]
        names.delete("allocs") if width < 120
        names -= %w[cpu gc status] if width < 100
        names
      end

      def row(table, span, names, unknown)
        cells = names.map { |name| cell(span, name, unknown) }
        styles = { "wall" => :bold, "gvl_wait" => :red }.transform_keys { |name| names.index(name) }
        table.row(*cells, styles: styles)
        holders(span.blame).first(HOLDERS).each { |ns, text| table.note("#{" " * 10}waited #{Text.duration(ns)} for the GVL, held by #{text}") }
      end

      def cell(span, name, unknown)
        case name
        when "allocs" then Text.count(span.allocations)
        when "status" then span.open ? "open" : span.status.to_s
        when "start" then terminal.width.to_i.between?(1, 119) ? Text.clock(span.start).split.last : Text.clock(span.start)
        when "id", "name" then span.public_send(name).to_s
        when "gvl_wait" then unknown && span.gvl_wait_ns.to_i.zero? ? "-" : Text.duration(span.gvl_wait_ns)
        else Text.duration(span.public_send(:"#{name}_ns"))
        end
      end
    end
  end
end
