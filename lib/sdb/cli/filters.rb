# frozen_string_literal: true

require_relative "../errors"
require_relative "../shared/filter_words"
require_relative "../shared/units"
require_relative "nearest"

module Sdb
  module CLI
    # The one filter language: which logs and which part of them. Every analysing command takes all of it.
    class Filters
      METRICS = %w[wall cpu gvl_wait blocked gc].freeze
      STATES = %w[running gvl_wait blocked gc unknown].freeze
      FLAGS = %w[--from --to --last --pid --thread --endpoint --request --trace --tag --state --min-duration
                 --percentile --metric --focus --hide --only-app].freeze

      # pid: Integer or nil. metric: Symbol.
      attr_reader :pid, :metric

      def initialize
        @values = {}
        @metric = :wall
      end

      #: () -> bool
      def metric_given? = @metric_given || false

      # name: as in to_h, or :metric
      #: (Symbol) -> bool
      def given?(name) = name == :metric ? metric_given? : @values.key?(name)

      # Keywords for the questions of Sdb::Profile.
      #: () -> Hash[Symbol, untyped]
      def to_h = @values.dup

      # Which part of the logs, as every answer says it in its heading.
      #: () -> Array[String]
      def words = FilterWords.of(@pid ? { pid: @pid.to_s, **@values } : @values)

      def define(parser)
        parser.separator ""
        parser.separator "Filters:"
        define_time(parser)
        define_who(parser)
        define_what(parser)
        parser.separator ""
      end

      # Text of --from and --to -> what Profile takes: "-30s" and "90s" count from the end and the start of the log
      # in ns, clock times stay text (their day is the log's), dates become a Time.
      #: (String, String) -> (Integer | String | Time)
      def self.instant(text, flag)
        text = text.strip
        case text
        when /\A\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\z/ then clock(text)
        when /\A\d{4}-\d\d-\d\d/ then date(text)
        when /\A-(.+)\z/ then -Units.duration_ns(Regexp.last_match(1))
        else Units.duration_ns(text.delete_prefix("+"))
        end
      rescue ArgumentError
        raise UsageError, "#{flag} #{text}: not a time; use a clock time (14:05, 2026-08-01T14:05:10Z), " \
                          "-30s (before the end) or 90s (after the start)"
      end

      def self.clock(text)
        hour, minute, second = text.split(":")
        raise ArgumentError if hour.to_i > 23 || minute.to_i > 59 || second.to_f >= 60

        "#{hour.rjust(2, "0")}:#{minute}:#{second || "00"}"
      end
      private_class_method :clock

      def self.date(text)
        require "time"
        raise ArgumentError unless text.match?(/\A[\d-]{10}(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\z/i)

        Time.parse(text)
      end
      private_class_method :date

      private

      def define_time(parser)
        parser.on("--last TIME", "only the last part of the log: 30s, 10m, 1h") { |v| @values[:last] = duration(v, "--last") }
        parser.on("--from TIME", "start: a clock time (14:05), or -30s before the end") do |v|
          @values[:from] = self.class.instant(v, "--from")
        end
        parser.on("--to TIME", "end, in the same form") { |v| @values[:to] = self.class.instant(v, "--to") }
      end

      def define_who(parser)
        parser.on("--pid PID", "only this process") { |v| @pid = integer(v, "--pid") }
        parser.on("--thread NAME|TID", "only this thread") { |v| @values[:thread] = v }
        parser.on("--endpoint NAME", "only in requests or jobs with this name") { |v| @values[:endpoint] = v }
        parser.on("--request ID", "only in this request") { |v| @values[:request] = v }
        parser.on("--trace ID", "only in this trace") { |v| @values[:trace] = v }
        parser.on("--tag K=V", "only with this tag; can be repeated") do |v|
          raise UsageError, "--tag #{v}: use name=value" unless v.match?(/\A[^=]+=/)

          (@values[:tag] ||= []) << v
        end
      end

      def define_what(parser)
        parser.on("--state LIST", "only in these states: running,gvl_wait,blocked,gc") { |v| @values[:state] = states(v) }
        parser.on("--min-duration TIME", "only in requests that took at least this long: 300ms") do |v|
          @values[:min_duration] = duration(v, "--min-duration")
        end
        parser.on("--percentile P", "only in requests slower than P % of those of the same endpoint") do |v|
          @values[:percentile] = percentile(v)
        end
        parser.on("--metric NAME", "what to measure: #{METRICS.join(", ")} (default: wall)") do |v|
          @metric = metric_named(v)
          @metric_given = true
        end
        parser.on("--focus REGEX", "only stacks that contain a function whose name or path matches") do |v|
          @values[:focus] = regexp(v, "--focus")
        end
        parser.on("--hide REGEX", "leave out functions whose name or path matches; their time goes to their callers") do |v|
          @values[:hide] = regexp(v, "--hide")
        end
        parser.on("--only-app", "likewise leave out gems, Ruby's own library and C code") { @values[:only_app] = true }
      end

      def duration(text, flag)
        Units.duration_ns(text)
      rescue ArgumentError
        raise UsageError, "#{flag} #{text}: not a duration; use 300ms, 10s, 5m or 1h"
      end

      def integer(text, flag)
        Integer(text, 10)
      rescue ArgumentError
        raise UsageError, "#{flag} #{text}: not a number"
      end

      def percentile(text)
        value = Float(text.delete_suffix("%"))
        raise ArgumentError unless value.between?(0, 100)

        value
      rescue ArgumentError
        raise UsageError, "--percentile #{text}: use a number from 0 to 100, such as 99"
      end

      def regexp(text, flag)
        Regexp.new(text)
      rescue RegexpError => e
        raise UsageError, "#{flag} #{text}: #{e.message}"
      end

      def states(text)
        text.split(",").map(&:strip).reject(&:empty?).each do |state|
          next if STATES.include?(state)

          raise UsageError, "--state #{state}: not a state; there are #{STATES.join(", ")}.#{Nearest.hint(state, STATES)}"
        end
      end

      def metric_named(text)
        return text.to_sym if METRICS.include?(text)

        raise UsageError, "--metric #{text}: not a metric; there are #{METRICS.join(", ")}.#{Nearest.hint(text, METRICS)}"
      end
    end
  end
end
