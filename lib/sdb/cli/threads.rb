# frozen_string_literal: true

require_relative "analysis"

module Sdb
  module CLI
    # Time per thread and state.
    class Threads < Analysis
      summary "what each thread did: running, waiting for the GVL, blocked, in GC"
      usage "[options] [RING...]"
      examples "sdb threads                # all threads of all processes",
               "sdb threads --last 1m --pid 4242"

      FIELDS = { wall: nil, cpu: :cpu_ns, gvl_wait: :gvl_wait_ns, blocked: :blocked_ns, gc: :gc_ns }.freeze

      private

      def run(arguments)
        ignore(:focus, :hide, :only_app)
        with_profile(arguments) do |profile|
          answer = profile.threads(**filters.to_h)
          json? ? print_json(answer) : show(profile, answer)
        end
        0
      end

      def show(profile, answer)
        heading(profile, Text.plural(answer.threads.size, "thread"))
        out.puts
        columns = %w[pid tid life running gvl_wait blocked gc cpu unknown].map { |name| [name, :right] }
        table = Table.new(terminal, [*columns, ["thread", :left]])
        sorted(answer.threads).each { |thread| row(table, thread) }
        table.print(out)
        return unless answer.threads.any? { |t| t.states == "inferred" }

        out.puts terminal.paint("* states inferred from the CPU clock: this Ruby does not tell", :dim)
      end

      def row(table, thread)
        times = %i[running_ns gvl_wait_ns blocked_ns gc_ns cpu_ns unknown_ns].map { |f| Text.duration(thread.public_send(f)) }
        life = thread.end_ns && thread.start_ns ? thread.end_ns - thread.start_ns : nil
        table.row thread.pid, thread.tid, Text.duration(life), *times,
                  "#{Text.clean(thread.name || "-")}#{thread.states == "inferred" ? " *" : ""}",
                  styles: { 3 => :green, 4 => :red, 5 => :blue, 6 => :magenta }
      end

      # In order of birth, or by the metric asked for.
      def sorted(threads)
        field = FIELDS[filters.metric]
        field ? threads.sort_by { |t| -t.public_send(field).to_i } : threads
      end
    end
  end
end
