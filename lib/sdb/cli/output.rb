# frozen_string_literal: true

require "securerandom"
require_relative "../shared/text"

module Sdb
  module CLI
    # Where text leaves: names and values come from the profiled program, or from whoever wrote the log. They may hold
    # bytes that are no text, sequences that drive a terminal, line ends that forge a line and marks that turn text
    # around. None of these gets out, whichever command printed them. What we paint ourselves is told apart by a number
    # that no log can know.
    class Output
      SECRET = SecureRandom.hex(8).freeze
      STYLE = /\x02#{SECRET}([\d;]+)m/
      private_constant :SECRET, :STYLE

      # For Terminal#paint. codes: as in "\e[1;31m".
      #: (String, Array[Integer]) -> String
      def self.painted(text, codes) = "\x02#{SECRET}#{codes.join(";")}m#{text}\x02#{SECRET}0m"

      #: (IO | Output) -> Output
      def self.wrap(io) = io.is_a?(self) ? io : new(io)

      def initialize(io)
        @io = io
      end

      # Each argument is one line, whatever it holds.
      #: (*String) -> nil
      def puts(*lines)
        return @io.puts if lines.empty?

        lines.flatten.each { |line| @io.puts(clean(line.to_s.chomp)) }
        nil
      end

      # Text of our own, of several lines: help.
      #: (String) -> nil
      def text(lines)
        puts(*lines.lines, *([""] if lines.empty?))
      end

      # As it is: JSON, pages, a screen that was cleaned line by line.
      #: (String) -> nil
      def raw(bytes)
        @io.write(bytes)
        nil
      end

      # For exporters, which clean what their format cannot hold.
      alias write raw

      def flush = @io.flush
      def tty? = @io.respond_to?(:tty?) && @io.tty?
      def winsize = @io.winsize

      private

      def clean(line)
        return Text.clean(line) unless line.include?("\x02")

        line.split(STYLE).each_with_index.map { |part, i| i.odd? ? "\e[#{part}m" : Text.clean(part) }.join
      end
    end
  end
end
