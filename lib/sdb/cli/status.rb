# frozen_string_literal: true

require_relative "losses"
require_relative "rings"

module Sdb
  module CLI
    # How a recorder is doing: read from its ring, so it works for dead processes as well.
    class Status < Rings
      summary "how a recorder is doing: its state, retention, losses and cost"
      usage "[options] [PID | RING...]"
      examples "sdb status         # of the newest running process",
               "sdb status 4242    # of this process, running or not",
               "sdb status x.sdb   # of the process that wrote this log"

      private

      def run(arguments)
        rings = arguments.size > 1 ? find_rings(arguments) : [one_ring(arguments)]
        rings.each_with_index do |ring, n|
          next print_json(ring.status) if json?

          out.puts if n.positive?
          show(ring)
        end
        0
      end

      def json_note = "one document per process, one per line"

      def show(ring)
        status = ring.status
        out.puts "#{terminal.paint("pid #{status.pid}", :bold)}  #{terminal.paint(status.state, *state_color(status.state))}" \
                 "#{": #{status.reason}" if status.reason}"
        facts(ring, status).each { |name, text| out.puts terminal.fit("  #{name.ljust(9)} #{text}") }
        status.warnings.each { |line| out.puts terminal.paint("  warning   #{line}", :yellow) }
      end

      def facts(ring, status)
        {
          "ruby" => status.ruby, "ring" => ring_fact(status), "interval" => interval_fact(status),
          "ticks" => ticks_fact(status), "threads" => "#{status.threads[:live]} live, #{status.threads[:seen]} seen",
          "names" => "#{Text.count(status.symbols[:count])}, #{Text.count(status.symbols[:recycled])} recycled",
          "lost" => Losses.words(status.lost) || "nothing", "cost" => cost_fact(ring, status.cost)
        }
      end

      def ring_fact(status)
        "#{status.ring}, #{Text.bytes(status.ring_bytes)}, holds the last #{Text.duration(status.retained_ns)}"
      end

      def interval_fact(status)
        nominal = Text.duration(status.interval_ns)
        now = status.effective_interval_ns.to_i
        return nominal if now.zero? || now == status.interval_ns

        "#{Text.duration(now)} now, raised from #{nominal} to stay within the CPU budget"
      end

      def ticks_fact(status)
        late = Text.percent(status.late_ticks, status.ticks)
        "#{Text.count(status.ticks)}, #{late} late; #{Text.count(status.thread_samples)} thread samples"
      end

      def cost_fact(ring, cost)
        share = ring.end_ns.positive? ? " (#{Text.percent(cost[:cpu_ns], ring.end_ns)} of a core)" : ""
        "#{Text.duration(cost[:cpu_ns])} CPU#{share}, #{Text.duration(cost[:gvl_ns])} with the GVL, #{Text.bytes(cost[:rss_bytes])} memory"
      end
    end
  end
end
