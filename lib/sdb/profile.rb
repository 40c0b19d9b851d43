# frozen_string_literal: true

require_relative "errors"

module Sdb
  # What one or many logs hold, as questions and answers. Made by Sdb.open; nothing is read before the first
  # question, and then once.
  #
  # Every question takes the same filters as keywords (all optional, all must hold):
  #
  #   from:, to:      Integer ns from the start of the earliest log (negative: from its end), Time, or the
  #                   command line's text ("-30s", "14:05:10", "2024-05-01T14:05:10Z")
  #                   a clock time is taken on the day on which the window touches the logs
  #   last:           Integer ns or text ("10m"), up to the end
  #   pid:            Integer or Array
  #   thread:         name, or tid as Integer or digits, or Array of these
  #   endpoint:       name of a span ("UsersController#index"); a Regexp matches
  #   request:, trace: id of a span
  #   tag:            "k=v", { k: v }, or Array of these
  #   state:          "running,gvl_wait" or Array of names
  #   min_duration:   only in root spans at least that long (ns or text)
  #   percentile:     only in root spans at or above that percentile of their endpoint's durations
  #   focus:          Regexp or text: only stacks with a function whose name or path matches
  #   hide:           Regexp or text: frames whose name or path matches are left out, their time goes to the caller
  #   only_app:       true: frames of gems, of Ruby itself, of C code and of evals are left out likewise
  #   own:            true: with sdb's own thread, which else is left out everywhere
  #
  # A value that makes no sense, or names what the logs do not hold, raises Sdb::FilterError.
  class Profile
    require_relative "profile/documents"

    METRICS = %i[wall cpu gvl_wait blocked gc].freeze
    STATES = %w[running gvl_wait blocked gc unknown].freeze

    require_relative "profile/data"
    require_relative "profile/warnings"
    require_relative "profile/selection"
    require_relative "profile/span_answers"
    require_relative "profile/answers"

    include Answers

    # @return [Array<String>]
    attr_reader :paths

    # paths: Array of ring files or dumps.
    # window: Range of Integer as from:/to: above; when given only chunks that overlap it are read, which
    #   makes a look at the end of a live log cheap: `-2_000_000_000..`.
    #: (Array[String], ?window: Range[Integer]?) -> void
    def initialize(paths, window: nil)
      @paths = paths.map { |path| path.to_s.dup.freeze }.freeze
      @window = window
      @unreadable = []
    end

    # A profile of the same logs that knows this part of them alone: what each question asks for is cut to it.
    # from, to: Integer ns from the start of the earliest log. thread: as above; nil for all.
    #: (?from: Integer, ?to: Integer?, ?thread: untyped) -> Profile
    def within(from: 0, to: nil, thread: nil)
      data
      part = dup
      part.instance_variable_set(:@part, { from: from, to: to, thread: thread }.freeze)
      part
    end

    # The logs, in the order of #paths. Files that could not be read are not here but in #warnings; when none
    # could, the first one's error is raised.
    #: () -> Array[Ring] ! FormatError
    def rings = data.rings

    # What was wrong or missing in the logs, one line each: "x.sdb: 3 chunks were overwritten while they were read".
    # What is so in many logs is one line for all.
    #: () -> Array[String]
    def warnings
      loaded = data
      @unreadable + Warnings.new(loaded.rings, loaded.ring_rows).lines
    end

    # Integer ns from the earliest start to the last instant known; of a part its length.
    #: () -> Integer
    def duration_ns = @part ? [@part[:to] || data.end_ns, data.end_ns].min - @part[:from] : data.end_ns

    # ns on the common line at which ring `number` has its zero: segment_columns' times less this are ring times.
    #: (Integer) -> Integer
    def base_ns(number) = data.ring_rows.fetch(number)[:base]

    # {torn:, torn_top:, gc:, unresolved:, queue_full:, ring:, gap_ns:} over all logs, as their recorders
    # counted since they began.
    #: () -> Hash[Symbol, Integer]
    def lost
      rings.map(&:lost).reduce { |a, b| a.merge(b) { |_, x, y| x + y } } || {}
    end

    # Threads as recorded, by order of birth within a ring, filters or not.
    #: () -> Array[ThreadInfo]
    def thread_infos = data.threads

    #: () -> Array[Gap]
    def gaps
      data.native.gaps.map do |row|
        Gap.new(ring: row[:ring], start_ns: data.ring_time(row[:ring], row[:at]), duration_ns: row[:ns], reason: row[:reason])
      end
    end

    #: () -> Array[GcRun]
    def gc_runs
      data.native.gcs.map do |row|
        GcRun.new(**row.slice(:ring, :thread, :phase, :count, :heap_live, :malloc_increase),
                  start_ns: data.ring_time(row[:ring], row[:at]), duration_ns: row[:ns])
      end
    end

    #: () -> Array[Memory]
    def memory
      data.native.memory.map do |row|
        Memory.new(ring: row[:ring], at_ns: data.ring_time(row[:ring], row[:at]), rss_bytes: row[:rss], cgroup_bytes: row[:cgroup],
                   limit_bytes: row[:limit])
      end
    end

    #: () -> Array[Mark]
    def marks
      data.native.marks.reject { |row| row[:level] }.map do |row|
        Mark.new(ring: row[:ring], at_ns: data.ring_time(row[:ring], row[:at]), text: data.text(row[:text]))
      end
    end

    # Warnings that memory ran short: percent of the limit, and figures by name.
    #: () -> Array[PreOom]
    def pre_ooms
      data.native.marks.select { |row| row[:level] }.map do |row|
        PreOom.new(ring: row[:ring], at_ns: data.ring_time(row[:ring], row[:at]), percent: row[:level],
                   values: row[:numbers].transform_keys { |key| data.text(key) })
      end
    end

    # The recorder's own counters over time, about one a second: cumulative values by name.
    #: () -> Array[CounterSample]
    def counter_samples
      data.native.counters.map do |row|
        CounterSample.new(ring: row[:ring], at_ns: data.ring_time(row[:ring], row[:at]), values: row[:values])
      end
    end

    # Not the data: it may be gigabytes.
    def inspect = "#<#{self.class} #{paths.join(" ")}>"

    private

    def data
      @data ||= load
    end

    def load
      opened = @paths.filter_map { |path| open_log(path) }
      raise @first_error if opened.empty? && @first_error

      rings = opened.map { |path, log| Ring.new(path, log) }
      Data.new(rings, opened.map(&:last), @window)
    ensure
      opened&.each { |_, log| log.close }
    end

    def open_log(path)
      [path, Ring.open_log(path)]
    rescue FormatError, SystemCallError => e
      @first_error ||= e
      @unreadable << (e.message.include?(path) ? e.message : "#{path}: #{e.message}")
      nil
    end
  end
end
