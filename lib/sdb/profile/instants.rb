# frozen_string_literal: true

require "time"
require_relative "../errors"
require_relative "../shared/units"

module Sdb
  class Profile
    # Turns what people give as a time into ns on the common line of a profile's logs.
    class Instants
      CLOCK = /\A(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d+)?))?\z/

      def initialize(data)
        @data = data
      end

      # Integer ns from the start (negative: from the end), Time, or text: "-30s", "90s", "14:05:10", RFC 3339.
      #: (Integer | Float | Time | String) -> Integer ! FilterError
      def parse(value)
        case value
        when Integer then value.negative? ? [@data.end_ns + value, 0].max : value
        when Time then of_time(value)
        when String then of_text(value.strip)
        else raise FilterError, "not a time: #{value.inspect}"
        end
      end

      # Integer ns or text ("300ms").
      #: (Integer | String) -> Integer ! FilterError
      def self.duration(value)
        return value if value.is_a?(Integer) && !value.negative?

        Units.duration_ns(String.try_convert(value) || raise(ArgumentError))
      rescue ArgumentError
        raise FilterError, "not a duration: #{value.inspect}; give 300ms, 10s, 5m or Integer ns"
      end

      private

      def of_time(time)
        [@data.instant_of(time.to_i * 1_000_000_000 + time.nsec), 0].max
      end

      def of_text(text)
        case text
        when CLOCK then of_clock(text)
        when /\A\d{4}-\d\d-\d\d/ then of_time(Time.parse(text))
        when /\A-/ then parse(-Units.duration_ns(text.delete_prefix("-")))
        else Units.duration_ns(text)
        end
      rescue ArgumentError
        raise FilterError, "not a time: #{text}; give 14:05:10, 2026-08-01T14:05:10Z, -30s (before the end) or 90s"
      end

      # A clock time is of the last day of the log on which it had come.
      def of_clock(text)
        hour, minute, second = text.match(CLOCK).captures
        last = last_time
        time = Time.new(last.year, last.month, last.day, hour.to_i, minute.to_i, (second || 0).to_r)
        time -= 86_400 if time > last
        of_time(time)
      end

      def last_time
        ring = @data.ring_rows.each_index.max_by { |n| @data.ring_rows[n][:last] } or return Time.now
        Time.at(0, @data.realtime(ring, @data.ring_rows[ring][:last]), :nsec)
      end
    end
  end
end
