# frozen_string_literal: true

require_relative "../shared/text"

module Sdb
  module CLI
    # Rows in aligned columns, two spaces apart. The last column takes what room the terminal has left; a cell
    # [name, place] of it is cut at the begin of the place.
    class Table
      # columns: [["self", :right], ["function", :left], ...]
      def initialize(terminal, columns)
        @terminal = terminal
        @columns = columns
        @rows = []
      end

      # styles: { column index => style }
      def row(*cells, styles: {})
        @rows << [cells.map { |cell| cell.is_a?(Array) ? cell.map { |part| Text.clean(part) } : Text.clean(cell) }, styles]
        self
      end

      # A line of its own under the row before, not aligned.
      def note(text)
        @rows << [text, nil]
        self
      end

      def empty? = @rows.empty?

      def print(out)
        widths = measure
        out.puts @terminal.paint(line(@columns.map(&:first), {}, widths, plain: true), :dim)
        @rows.each do |cells, styles|
          styles ? out.puts(line(cells, styles, widths)) : @terminal.wrap(cells).each { |part| out.puts part }
        end
      end

      private

      def measure
        grid = [@columns.map(&:first), *@rows.filter_map { |cells, styles| cells if styles }]
        @columns.each_with_index.map do |(_, side), i|
          free = i == @columns.size - 1 && side == :left # nothing comes after it
          free ? 0 : grid.map { |cells| cells[i].to_s.length }.max
        end
      end

      def line(cells, styles, widths, plain: false)
        room = @terminal.width
        used = 0
        parts = cells.each_with_index.map do |cell, i|
          cell = last_cell(cell, room && [room - used, 0].max) if i == cells.size - 1
          used += widths[i] + 2
          padded = pad(cell, i, widths[i], last: i == cells.size - 1)
          plain || !styles[i] ? padded : @terminal.paint(padded, *styles[i])
        end
        parts.join("  ").rstrip
      end

      # What stands where nothing has room is there all the same: better a wrapped line than none.
      def last_cell(cell, room)
        room = nil if room && room < 4
        cell.is_a?(Array) ? @terminal.fit_place(*cell, room) : @terminal.fit(cell, room)
      end

      def pad(cell, index, width, last:)
        return cell.rjust(width) if @columns[index][1] == :right

        last ? cell : cell.ljust(width)
      end
    end
  end
end
