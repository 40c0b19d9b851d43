# frozen_string_literal: true

require_relative "errors"
require_relative "profile/documents"

module Sdb
  # What one or many logs hold, as questions and answers. Made by Sdb.open; nothing is read before the first
  # question, and then once.
  #
  # Every question takes the same filters as keywords (all optional, all must hold):
  #
  #   from:, to:      Integer ns from the start of the earliest log (negative: from its end), Time, or the
  #                   command line's text ("-30s", "14:05:10", "2024-05-01T14:05:10Z")
  #   last:           Integer ns or text ("10m"), up to the end
  #   pid:            Integer or Array
  #   thread:         name, or tid as Integer or digits
  #   endpoint:       name of a span ("UsersController#index"); a Regexp matches
  #   request:, trace: id of a span
  #   tag:            "k=v", { k: v }, or Array of these
  #   state:          "running,gvl_wait" or Array of names
  #   min_duration:   only in root spans at least that long (ns or text)
  #   percentile:     only in root spans at or above that percentile of their endpoint's durations
  #   focus:          Regexp or text: only stacks with a matching function
  #   hide:           Regexp or text: matching frames are left out, their time goes to the caller
  #   only_app:       true: frames outside the app's own directory are left out likewise
  #
  # A value that makes no sense raises Sdb::FilterError.
  class Profile
    METRICS = %i[wall cpu gvl_wait blocked gc].freeze
    STATES = %w[running gvl_wait blocked gc unknown].freeze

    # paths: Array of ring files or dumps.
    # window: Range of Integer as from:/to: above; when given only chunks that overlap it are read, which
    #   makes a look at the end of a live log cheap: `-2_000_000_000..`.
    #: (Array[String], ?window: Range[Integer]?) -> void
    def initialize(paths, window: nil)
      @paths = paths.map { |path| path.to_s.dup.freeze }.freeze
      @window = window
    end

    # @return [Array<String>]
    attr_reader :paths

    # The logs, in the order of #paths. Files that could not be read are not here but in #warnings.
    #: () -> Array[Ring]
    def rings; end

    # What was wrong or missing in the logs, one line each: "x.sdb: lapped while read: 3 chunks lost".
    #: () -> Array[String]
    def warnings; end

    # Integer ns from the earliest start to the last instant known.
    #: () -> Integer
    def duration_ns; end

    # {torn:, torn_top:, gc:, unresolved:, queue_full:, ring:, gap_ns:} over all logs.
    #: () -> Hash[Symbol, Integer]
    def lost; end

    # `sdb functions`
    #: (?metric: Symbol, **untyped) -> Functions ! FilterError
    def functions(metric: :wall, **filters); end

    # `sdb lines FILE`. path: as recorded, or a unique end of it ("models/user.rb"); none matching: FilterError.
    #: (String, ?metric: Symbol, **untyped) -> Lines ! FilterError
    def lines(path, metric: :wall, **filters); end

    # Paths in which time was spent, for completion and suggestions.
    #: (**untyped) -> Array[String]
    def source_paths(**filters); end

    # `sdb threads`
    #: (**untyped) -> Threads ! FilterError
    def threads(**filters); end

    # `sdb tree`. lines: true gives a node a line, false one per function. min_ns drops smaller nodes.
    #: (?metric: Symbol, ?lines: bool, ?min_ns: Integer, **untyped) -> Tree ! FilterError
    def tree(metric: :wall, lines: false, min_ns: 0, **filters); end

    # `sdb callers F`. function: name or Regexp.
    #: (String | Regexp, ?metric: Symbol, **untyped) -> Callers ! FilterError
    def callers(function, metric: :wall, **filters); end

    # `sdb export collapsed` without the formatting: yields (process label, thread label, frames root first,
    # Integer ns) for each distinct stack, in a stable order.
    #: (?metric: Symbol, **untyped) { (String, String, Array[Frame], Integer) -> void } -> void
    def each_stack(metric: :wall, **filters); end

    # The text of `sdb export collapsed`. lines: true adds " path:line" to frames.
    #: (?metric: Symbol, ?lines: bool, **untyped) -> String
    def collapsed(metric: :wall, lines: false, **filters); end

    # All spans in order of their start. roots: true leaves out spans inside others. Blame is empty here.
    #: (?roots: bool, **untyped) -> Spans ! FilterError
    def spans(roots: false, **filters); end

    # `sdb slow`: root spans, slowest first, with blame.
    #: (?limit: Integer, **untyped) -> Spans ! FilterError
    def slow(limit: 20, **filters); end

    # `sdb request ID`: the span with that request id (the longest when several have it) and its runs;
    # FilterError when there is none.
    #: (String, **untyped) -> Request ! FilterError
    def request(id, **filters); end

    # `sdb stacks`: what every thread did at an instant (as from:), default the last one known.
    #: (?at: Integer | Time | String | nil, ?pid: Integer?, **untyped) -> Stacks
    def stacks(at: nil, **filters); end

    # Threads as recorded, by order of birth, filters or not.
    #: () -> Array[ThreadInfo]
    def thread_infos; end

    # Yields each stretch of a thread on one stack in one state, thread by thread in order of time.
    #: (**untyped) { (Segment) -> void } -> void
    def each_segment(**filters); end

    # The same in bulk, as packed native-endian columns for exporters and the HTML report (see #segment_columns
    # in FORMAT of Columns below): {count:, thread: u32, start_ns: u64, duration_ns: u64, stack: u32, state: u8,
    # cpu_ns: u64}. start_ns counts from the start of the earliest log (#base_ns of the ring subtracted gives
    # ring time). Filters focus, hide and only_app do not apply.
    #: (**untyped) -> Hash[Symbol, String | Integer]
    def segment_columns(**filters); end

    # The dictionaries behind segment_columns:
    # {stack_parent: u32s, stack_frame: u32s, frame_function: u32s, frame_line: u32s,
    #  functions: [[name, path, line], ...]}; stack 0 is the empty stack; parents come before children.
    #: () -> Hash[Symbol, untyped]
    def dictionaries; end

    #: () -> Array[Gap]
    def gaps; end

    #: () -> Array[GcRun]
    def gc_runs; end

    #: () -> Array[Memory]
    def memory; end

    #: () -> Array[Mark]
    def marks; end
  end
end
