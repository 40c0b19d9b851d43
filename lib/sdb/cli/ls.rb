# frozen_string_literal: true

require_relative "rings"

module Sdb
  module CLI
    # What logs there are.
    class Ls < Rings
      summary "list the logs of running and finished processes"
      usage "[options] [RING...]"
      examples "sdb ls               # in the default directory",
               "sdb ls /var/log/sdb  # in this directory"

      private

      def run(arguments)
        rings = find_rings(arguments)
        return print_json({ schema: 1, rings: rings.map { |ring| ring.entry.to_h } }) || 0 if json?

        table = Table.new(terminal, [["pid", :right], ["state", :left], ["program", :left], ["start", :left],
                                     ["keeps", :right], ["file", :left]])
        rings.each do |ring|
          entry = ring.entry
          table.row entry.pid, entry.state, Text.program(ring)[0, 24],
                    Text.clock(entry.start), Text.duration(entry.retained_ns), ["", entry.path],
                    styles: { 1 => state_color(entry.state) }
        end
        table.print(out)
        0
      end
    end
  end
end
