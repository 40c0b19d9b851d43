# frozen_string_literal: true

require_relative "output"

module Sdb
  module CLI
    # What the place that output goes to can do: colour, width, line-drawing characters. Anything but a terminal
    # gets plain text of full width.
    class Terminal
      CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36 }.freeze
      DRAWING = { branch: "├─ ", last: "└─ ", line: "│  ", next: "› ", running: "█", gvl_wait: "▒", blocked: "░",
                  gc: "▓", unknown: "·", ellipsis: "…", bar: "█" }.freeze
      ASCII = { branch: "|- ", last: "`- ", line: "|  ", next: "> ", running: "#", gvl_wait: "~", blocked: ".",
                gc: "+", unknown: "?", ellipsis: "...", bar: "#" }.freeze

      def initialize(io, env: ENV)
        @io = io
        @env = env
      end

      #: () -> bool
      def tty?
        @io.respond_to?(:tty?) && @io.tty?
      end

      #: () -> bool
      def color?
        tty? && @env["NO_COLOR"].to_s.empty? && @env["TERM"] != "dumb"
      end

      # Columns of the terminal ($COLUMNS, where it is exported, as people set it), nil where text has no width.
      #: () -> Integer?
      def width
        return unless tty?

        columns = [@env["COLUMNS"].to_i, size&.last.to_i].find(&:positive?).to_i
        columns.positive? ? columns : 80
      end

      #: () -> Integer
      def height
        rows = size&.first.to_i
        rows.positive? ? rows : 24
      end

      #: (String, *Symbol) -> String
      def paint(text, *styles)
        color? && !styles.empty? ? Output.painted(text, CODES.fetch_values(*styles)) : text
      end

      # A line-drawing or shading character, in ASCII where the locale knows no other.
      #: (Symbol) -> String
      def draw(name)
        (unicode? ? DRAWING : ASCII).fetch(name)
      end

      # Cuts to the terminal's width; leaves text alone elsewhere.
      #: (String, ?Integer?) -> String
      def fit(text, room = width)
        return text if room.nil? || text.length <= room

        mark = draw(:ellipsis)
        room > mark.length ? text[0, room - mark.length] + mark : text[0, [room, 0].max]
      end

      # The text in lines of the terminal's width, the later ones under the first word and a bit; one line elsewhere.
      #: (String) -> Array[String]
      def wrap(text)
        indent = text[/\A */].length
        return [text] if width.nil? || text.length <= width || indent + 20 > width

        lines = [" " * indent]
        text.split.each do |word|
          lines << (" " * (indent + 2)) if lines.last.length + word.length + 1 > width && !lines.last.strip.empty?
          lines.last << (lines.last.strip.empty? ? "" : " ") << word
        end
        lines.map { |line| fit(line) }
      end

      # A name and where it is. What is too much goes from the front of the place: its end tells most.
      #: (String, String, ?Integer?) -> String
      def fit_place(name, place, room = width)
        text = [name, place].reject(&:empty?).join("  ")
        return text if room.nil? || text.length <= room

        mark = draw(:ellipsis)
        left = room - (name.empty? ? 0 : name.length + 2) - mark.length
        return fit(name.empty? ? place : name, room) if place.empty? || left < 8

        [name, mark + place[-left..]].reject(&:empty?).join("  ")
      end

      private

      def unicode?
        locale = [@env["LC_ALL"], @env["LC_CTYPE"], @env["LANG"]].find { |v| v && !v.empty? }
        locale.to_s.match?(/utf-?8/i)
      end

      def size
        require "io/console"
        @io.winsize
      rescue SystemCallError, NoMethodError
        nil
      end
    end
  end
end
