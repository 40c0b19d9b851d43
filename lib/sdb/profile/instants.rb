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

      # from:, to: of a question, nil for none -> [Integer, Integer?]. A clock time has no day: it is taken on the day
      # on which the window touches the log, the last one of several.
      #: (untyped, untyped) -> [Integer, Integer?] ! FilterError
      def window(from, to)
        begins, ends = [from, to].map { |value| clock_in(value) }
        if begins
          begins = last_at(begins, ends || to.nil? ? log_end : [log_end, time_of(parse(to))].min)
          ends &&= first_at(ends, begins)
        elsif ends
          ends = end_without_clock_begin(ends, from)
        end
        window = [begins ? of_time(begins) : parse(from || 0), ends ? of_time(ends) : to && parse(to)]
        raise FilterError, "the start (from) is after the end (to)" if window.last && window.first > window.last

        window
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

      # An instant alone is of the last day of the log on which it had come.
      def of_clock(text)
        of_time(last_at(clock_in(text), log_end))
      end

      # In the log where it can be, the last day of several; else after it: then all of the log lies before.
      def end_without_clock_begin(clock, from)
        start = from ? [log_start, time_of(parse(from))].max : log_start
        last = last_at(clock, log_end)
        last >= start ? last : first_at(clock, log_end)
      end

      # [hour, minute, second] of a clock time's text, nil of anything else.
      def clock_in(value)
        hour, minute, second = value.is_a?(String) && value.strip.match(CLOCK)&.captures
        return unless hour
        raise FilterError, "not a time: #{value}; there are 24 hours of 60 minutes" if hour.to_i > 23 || minute.to_i > 59 || second.to_f >= 60

        [hour.to_i, minute.to_i, (second || 0).to_r]
      end

      # The last, and the first, instant with that clock time up to, and from, another.
      def last_at(clock, limit)
        same = on_day_of(limit, clock)
        same > limit ? on_day_of(noon(limit) - 86_400, clock) : same
      end

      def first_at(clock, limit)
        same = on_day_of(limit, clock)
        same < limit ? on_day_of(noon(limit) + 86_400, clock) : same
      end

      def on_day_of(time, clock) = Time.new(time.year, time.month, time.day, *clock)
      # The day before and after it have 23 or 25 hours at times.
      def noon(time) = Time.new(time.year, time.month, time.day, 12)

      def log_start
        ring = @data.ring_rows.each_index.min_by { |n| @data.ring_rows[n][:first] } or return Time.now
        Time.at(0, @data.realtime(ring, @data.ring_rows[ring][:first]), :nsec)
      end

      def log_end
        ring = @data.ring_rows.each_index.max_by { |n| @data.ring_rows[n][:last] } or return Time.now
        Time.at(0, @data.realtime(ring, @data.ring_rows[ring][:last]), :nsec)
      end

      # Local time of an instant on the common line.
      def time_of(instant)
        ring = @data.ring_rows.each_index.max_by { |n| @data.ring_rows[n][:first] <= instant ? @data.ring_rows[n][:first] : -1 } or return Time.now
        Time.at(0, @data.realtime(ring, instant), :nsec)
      end
    end
  end
end
