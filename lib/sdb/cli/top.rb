# frozen_string_literal: true

require "io/wait"
require "stringio"
require "time"
require_relative "analysis"

module Sdb
  module CLI
    # A live view from the end of the log.
    class Top < Analysis
      summary "live view of a running process, read from its log without disturbing it"
      usage "[options] [PID | RING...]"
      examples "sdb top               # all processes in the default directory; q or Ctrl-C to quit",
               "sdb top 4242 --metric wall  # include waiting (the default is cpu)",
               "sdb top --count 1     # print once, for scripts"

      private

      def own_options(parser)
        parser.on("--every TIME", "time between updates (default: 2s); each covers the time since the previous one") { |v| @every = gap(v) }
        parser.on("--count N", "stop after N updates (default: never on a terminal, else 1)") { |v| @count = whole(v, "--count") }
        limit_option(parser, "functions", "a screenful")
      end

      def gap(text)
        ns = Units.duration_ns(text)
        ns >= 100_000_000 ? ns : raise(ArgumentError)
      rescue ArgumentError
        raise UsageError, "--every #{text}: use a duration of 100ms or more"
      end

      def json_note = "one document per update, one per line"

      def run(arguments)
        every = @every || 2_000_000_000
        looks = @count || (terminal.tty? ? 0 : 1)
        done = 0
        loop do
          look(arguments, every)
          done += 1
          break if looks.positive? && done >= looks
          break if pressed_q?(every / 1e9)
        end
        0
      end

      def look(arguments, every)
        with_profile(arguments, window: -every..) do |profile|
          part = { last: every }.merge(filters.to_h)
          functions = profile.functions(metric: metric, **part)
          threads = profile.threads(**part)
          json? ? print_document(functions, threads) : draw(profile, functions, threads, every)
        end
      end

      # What is on a CPU, unless asked otherwise: with wall time threads that sleep would lead.
      def metric = filters.metric_given? ? filters.metric : :cpu

      def print_document(functions, threads)
        document = { schema: 1, at: Time.now.utc.iso8601(3), metric: functions.metric, total_ns: functions.total_ns }
        list = functions.functions
        print_json(document.merge(threads: threads.threads.map(&:to_h),
                                  functions: list.first(limit_for(list.size, 0)).map(&:to_h)))
        out.flush
      end

      # Everything at once, so that the screen does not flicker.
      def draw(profile, functions, threads, every)
        shown = StringIO.new
        screen = Output.wrap(shown)
        rows = [terminal.height - [threads.threads.size, 8].min - 7, 5].max
        head(screen, profile, every)
        thread_table(threads.threads).print(screen)
        screen.puts
        function_table(functions, @limit ? limit_for(functions.functions.size, rows) : rows).print(screen)
        out.raw "\e[H\e[J" if terminal.tty?
        out.raw shown.string
        out.flush
      end

      def head(screen, profile, every)
        names = profile.rings.map { |ring| "#{Text.program(ring)}, pid #{ring.pid}, #{ring.state}" }
        screen.puts terminal.paint(terminal.fit("#{Time.now.strftime("%H:%M:%S")}  last #{Text.duration(every)}  " \
                                                "#{names.first(4).join("; ")}#{"; #{names.size - 4} more" if names.size > 4}"), :bold)
        screen.puts
      end

      def thread_table(threads)
        several = threads.map(&:pid).uniq.size > 1
        names = %w[tid running gvl_wait blocked gc cpu]
        names.unshift("pid") if several
        table = Table.new(terminal, names.map { |n| [n, :right] } << ["thread", :left])
        busy = threads.sort_by { |t| [-(t.running_ns + t.gvl_wait_ns + t.gc_ns), t.pid, t.tid] }
        busy.first(terminal.tty? ? 8 : threads.size).each do |t|
          whole = t.running_ns + t.gvl_wait_ns + t.blocked_ns + t.gc_ns + t.unknown_ns.to_i
          shares = [t.running_ns, t.gvl_wait_ns, t.blocked_ns, t.gc_ns, t.cpu_ns].map { |ns| Text.percent(ns.to_i, whole) }
          shares[1] = "-" if t.states == "inferred" # nobody knows
          styles = { 1 => :green, 2 => :red, 3 => :blue, 4 => :magenta }
          styles = styles.transform_keys(&:succ) if several
          table.row(*(t.pid if several), t.tid, *shares, t.name || "-", styles: styles)
        end
        table
      end

      def function_table(functions, rows)
        table = Table.new(terminal, [["self", :right], ["total", :right], ["function (#{functions.metric})", :left]])
        functions.functions.first(rows).each do |f|
          table.row Text.percent(f.self_ns, functions.total_ns), Text.percent(f.total_ns, functions.total_ns),
                    place_cell(f)
        end
        table
      end

      # Waits so long for a key.
      def pressed_q?(seconds)
        unless terminal.tty? && $stdin.tty?
          sleep seconds
          return false
        end
        require "io/console"
        key = $stdin.raw(min: 0, time: 0, intr: true) { $stdin.wait_readable(seconds) && $stdin.getc }
        %w[q Q].include?(key)
      end
    end
  end
end
