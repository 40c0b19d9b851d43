# frozen_string_literal: true

require_relative "../oom/sentences"
require_relative "../shared/paths"
require_relative "../shared/text"
require_relative "table"

module Sdb
  module CLI
    # The text of `sdb oom show`.
    class OomText
      MEMORY_ROWS = 12

      def initialize(terminal, out, depth:)
        @terminal = terminal
        @out = out
        @depth = depth
      end

      #: (Sdb::Oom::Death) -> void
      def print(death)
        @death = death
        @paths = Paths.of([death.ring].compact)
        how
        memory
        spans
        threads
      end

      private

      attr_reader :death

      def how
        first, *rest = Sdb::Oom::Sentences.of(death)
        @out.puts @terminal.paint(first, :bold)
        rest.each { |line| @out.puts "  #{line}" }
      end

      def heading(text)
        @out.puts "", @terminal.paint(text, :bold)
      end

      # Evenly spread over the last minute, always with the last one.
      def memory
        rows = death.memory
        return if rows.empty?

        heading "Memory, last minute"
        step = [(rows.size - 1) / (MEMORY_ROWS - 1.0), 1].max
        table = Table.new(@terminal, [["before the end", :right], ["process", :right], ["cgroup", :right], ["limit", :right], ["", :left]])
        (0...[rows.size, MEMORY_ROWS].min).map { |i| rows[rows.size - 1 - (i * step).round] }.uniq.reverse_each do |row|
          table.row Text.duration([death.end_ns - row.at_ns, 0].max), Text.bytes(row.rss_bytes), Text.bytes(row.cgroup_bytes),
                    row.limit_bytes.zero? ? "none" : Text.bytes(row.limit_bytes), bar(row)
        end
        table.print(@out)
      end

      def bar(row)
        return "" if row.limit_bytes.zero?

        part = [row.cgroup_bytes.fdiv(row.limit_bytes), 1.0].min
        "#{@terminal.draw(:bar) * (part * 30).round} #{(part * 100).round} %"
      end

      def spans
        heading "In flight"
        open = death.spans
        return @out.puts("  no requests or jobs") if open.empty?

        table = Table.new(@terminal, [["for", :right], ["kind", :left], ["id", :left], ["thread", :right], ["what", :left]])
        open.each do |span|
          table.row Text.duration(span.wall_ns), span.kind, span.id.to_s, span.tid, span.name.to_s
        end
        table.print(@out)
      end

      def threads
        heading(death.stacks_of_the_kill? ? "Threads, at the moment of the kill" : "Threads, when last sampled")
        death.threads.each do |thread|
          @out.puts
          @out.puts "  #{head(thread)}"
          frames(thread.frames)
        end
      end

      def head(thread)
        since = thread.since_ns && [death.end_ns - thread.since_ns, 0].max
        ["thread #{thread.tid}", thread.name, thread.state, since && "for #{Text.duration(since)}",
         thread.span && "in #{thread.span}"].compact.join("  ")
      end

      # Newest first, as in a backtrace.
      def frames(frames)
        @out.puts "      (no Ruby frames)" if frames.empty?
        frames.last(@depth).reverse_each do |frame|
          @out.puts @terminal.fit_place("      #{frame.name}", Text.place(@paths.short(frame.path), frame.line))
        end
        left = frames.size - @depth
        @out.puts @terminal.paint("      #{@terminal.draw(:ellipsis)} #{left} more (--depth #{frames.size})", :dim) if left.positive?
      end
    end
  end
end
