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
        columns = columns_for(answer.threads)
        table = Table.new(terminal, [*columns.map { |name| [name, :right] }, ["thread", :left]])
        sorted(answer.threads).each { |thread| row(table, thread, columns) }
        table.print(out)
        return unless answer.threads.any? { |t| t.states == "inferred" }

        out.puts terminal.paint("* states are inferred from the CPU clock: waiting for the GVL counts as blocked", :dim)
      end

      # Those that tell anything here: a terminal is not wide.
      def columns_for(threads)
        columns = %w[pid tid life running gvl_wait blocked gc cpu unknown]
        columns.delete("pid") if threads.map(&:pid).uniq.size == 1
        columns.delete("unknown") if threads.all? { |t| t.unknown_ns.to_i.zero? }
        columns
      end

      STYLES = { "running" => :green, "gvl_wait" => :red, "blocked" => :blue, "gc" => :magenta }.freeze

      def row(table, thread, columns)
        life = thread.end_ns && thread.start_ns ? thread.end_ns - thread.start_ns : nil
        cells = columns.map do |name|
          case name
          when "pid", "tid" then thread.public_send(name)
          when "life" then Text.duration(life)
          when "gvl_wait" then thread.states == "inferred" ? "-" : Text.duration(thread.gvl_wait_ns)
          else Text.duration(thread.public_send(:"#{name}_ns"))
          end
        end
        styles = columns.each_index.to_h { |i| [i, STYLES[columns[i]]] }.compact
        table.row(*cells, "#{thread.name || "-"}#{" *" if thread.states == "inferred"}", styles: styles)
      end

      # In order of birth, or by the metric asked for.
      def sorted(threads)
        field = FIELDS[filters.metric]
        field ? threads.sort_by { |t| -t.public_send(field).to_i } : threads
      end
    end
  end
end
