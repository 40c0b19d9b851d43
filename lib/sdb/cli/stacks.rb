# frozen_string_literal: true

require_relative "analysis"

module Sdb
  module CLI
    # What every thread is doing, or did last.
    class Stacks < Analysis
      summary "what every thread is doing right now, or did last"
      usage "[options] [PID | RING...]"
      examples "sdb stacks 4242              # read from its log; the process is not disturbed",
               "sdb stacks x.sdb --to -10s   # ten seconds before the end",
               "sdb stacks --thread 'puma srv tp 001' --depth 10"

      # How far back a live log is read: a thread that did not change since its chunk began is repeated there.
      WINDOW_NS = 5_000_000_000

      private

      def own_options(parser)
        parser.on("--depth N", "show only the newest N frames") { |v| @depth = whole(v, "--depth") }
      end

      def run(arguments)
        ignore(:metric, :min_duration, :percentile)
        at = filters.to_h[:to]
        with_profile(arguments, window: at ? nil : -WINDOW_NS..) do |profile|
          answer = ask(profile, at)
          # since when, of a thread that waits for longer than was read: the whole log knows
          next with_profile(arguments) { |whole| tell(whole, ask(whole, at)) } if !at && profile.cut_short?(answer)

          tell(profile, answer)
        end
        0
      end

      def ask(profile, instant)
        profile.stacks(at: instant, **filters.to_h.reject { |key, _| %i[from to last].include?(key) })
      end

      def tell(profile, answer) = json? ? print_json(answer) : show(profile, answer)

      def show(profile, answer)
        ended = profile.rings.size == 1 && profile.rings.first.state == "dead" ? "   the process is dead" : ""
        out.puts terminal.paint("at #{Text.clock(answer.at)}   #{Text.plural(answer.threads.size, "thread")}#{ended}", :bold)
        part = filters.words
        out.puts terminal.fit("only: #{part.join("   ")}") unless part.empty?
        now = rel_times(profile, answer.at)
        answer.threads.each do |thread|
          out.puts
          out.puts head(thread, now)
          print_frames(thread.frames)
        end
      end

      # The document's instant in the ring time of each process.
      def rel_times(profile, at)
        require "time"
        time = Time.iso8601(at)
        ns = time.to_i * 1_000_000_000 + time.nsec
        profile.rings.to_h { |ring| [ring.pid, ns - ring.start_realtime_ns] }
      rescue ArgumentError, TypeError
        {}
      end

      def head(thread, now)
        since = now[thread.pid] && thread.since_ns ? [now[thread.pid] - thread.since_ns, 0].max : nil
        parts = ["pid #{thread.pid} thread #{thread.tid}", thread.name,
                 terminal.paint(thread.state, *state_style(thread.state)), since && "for #{Text.duration(since)}",
                 thread.span && "in #{thread.span}"]
        parts.compact.join("  ")
      end

      # Newest first, as in a backtrace.
      def print_frames(frames)
        out.puts "    (no Ruby frames)" if frames.empty?
        shown = @depth ? frames.last(@depth) : frames
        @lines ||= Hash.new { |known, frame| known[frame] = terminal.fit_place("    #{frame.name}", place(frame.path, frame.line)) }
                       .compare_by_identity
        shown.reverse_each { |frame| out.puts @lines[frame] }
        left = frames.size - shown.size
        out.puts terminal.paint("    #{terminal.draw(:ellipsis)} #{left} more", :dim) if left.positive?
      end
    end
  end
end
