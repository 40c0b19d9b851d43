# frozen_string_literal: true

require_relative "analysis"

module Sdb
  module CLI
    # The slowest requests and jobs.
    class Slow < Analysis
      summary "the slowest requests and jobs: what they spent, who held the GVL meanwhile"
      usage "[options] [RING...]"
      examples "sdb slow                                  # the 20 slowest",
               "sdb slow --endpoint 'UsersController#index' --limit 5",
               "sdb slow --metric gvl_wait                # those that waited most for the GVL",
               "sdb slow --last 10m --min-duration 300ms"

      details "allocs: objects that it allocated; on Ruby 3.1 those that the whole process allocated meanwhile.\n"

      HOLDERS = 2
      LIMIT = 20

      private

      def own_options(parser)
        parser.on("--limit N", "at most N requests (#{LIMIT}; 0 for all)") { |v| @limit = whole(v, "--limit") }
      end

      def run(arguments)
        ignore(:state, :focus, :hide, :only_app)
        with_profile(arguments) do |profile|
          answer = slowest(profile)
          json? ? print_json({ schema: 1, spans: answer.map(&:to_h) }) : show(profile, answer)
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
        table = Table.new(terminal, [*%w[wall cpu gvl_wait blocked gc allocs status].map { |n| [n, :right] },
                                     ["start", :left], ["id", :left], ["name", :left]])
        unknown = inferred?(profile)
        spans.each { |span| row(table, span, unknown) }
        table.print(out)
        return unless unknown

        out.puts terminal.paint("gvl_wait: this Ruby does not tell who waits for the GVL; it shows as blocked", :dim)
      end

      def show_none(profile)
        heading(profile, "no requests or jobs", "in #{Text.duration(profile.duration_ns)}")
        out.puts
        out.puts "Requests and jobs are known by themselves with sdb/auto under Rails, Rack, Sidekiq and Active Job;"
        out.puts "anything else with Sdb.span(\"name\") { }."
      end

      # One line an endpoint when there are several.
      def summarize(spans)
        by_name = spans.group_by(&:name)
        return if by_name.size < 2

        table = Table.new(terminal, [["worst", :right], ["among these", :right], ["endpoint", :left]])
        by_name.each { |name, list| table.row Text.duration(list.map(&:wall_ns).max), list.size, Text.clean(name) }
        table.print(out)
        out.puts
      end

      def row(table, span, unknown)
        times = %i[wall_ns cpu_ns gvl_wait_ns blocked_ns gc_ns].map { |field| Text.duration(span.public_send(field)) }
        times[2] = "-" if unknown && span.gvl_wait_ns.to_i.zero?
        table.row(*times, Text.count(span.allocations), span.open ? "open" : span.status.to_s, Text.clock(span.start),
                  Text.clean(span.id), Text.clean(span.name), styles: { 0 => :bold, 2 => :red })
        holders(span.blame).first(HOLDERS).each { |ns, text| table.note("#{" " * 10}waited #{Text.duration(ns)} for the GVL held by #{text}") }
      end
    end
  end
end
