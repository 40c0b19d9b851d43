# frozen_string_literal: true

module Sdb
  # Spans, tags and marks: what a thread works for. These are the stand-ins that just run the block; when the recorder
  # is loaded it puts its own in front (ext/recorder/glue/span_api.c). They follow fibers, not threads, cost about
  # a microsecond while recording, and nothing of a finished span is kept in the process.
  @tag_filter = nil

  class << self
    # Runs the block as one piece of work with a begin, an end and its own times.
    #
    #   Sdb.span("import", kind: :job, id: job.id, customer: 7) { ... }
    #
    # @param name [String, Symbol] what `sdb slow` groups by: a kind of work, not one case of it
    # @param kind [Symbol] :span, :request, :job, :sql ...
    # @param id [String, nil] what `sdb request ID` finds; made up for a span without parent
    # @param tags [Hash] names and values (to_s) to filter by
    # @return what the block returns. Its end is recorded however it is left.
    #: (String | Symbol, ?kind: Symbol, ?id: String?, **untyped) { () -> untyped } -> untyped
    def span(_name, **) = yield

    # Puts tags on every sample of this fiber while the block runs. Without a block: on the span that is open here, to
    # its end; then returns whether there is one.
    #: (**untyped) ?{ () -> untyped } -> untyped
    def tag(**) = block_given? ? yield : false

    # The tags in effect here, of spans and tag blocks, as given. Frozen.
    #: () -> Hash[Symbol, untyped]
    def tags = NO_TAGS

    # Decides what of the tags of spans and tag blocks gets into the log. The block is given a Hash and returns the Hash to
    # record; nil takes the filter away. If the block raises, nothing of these tags is recorded. In Rails there is one from
    # the start: values whose names are in `config.filter_parameters` become "[FILTERED]".
    #
    #   Sdb.filter { |tags| tags.except(:path) }
    #
    # It is called by each span and tag that has tags: make it quick. Tags of the process (SDB_TAGS) do not come by.
    #: () ?{ (Hash[untyped, untyped]) -> Hash[untyped, untyped] } -> nil
    def filter(&block)
      @tag_filter = block && FilteredTags.new(block)
      Native.filter_tags(@tag_filter)
      nil
    end

    # What filter was given; nil: none.
    attr_reader :tag_filter

    # Notes a moment of the whole process, as a deploy.
    #: (String) -> nil
    def mark(_text) = nil

    # The innermost open span of this fiber, nil when there is none or nothing is recorded. It has id, trace_id, name=,
    # status= (an HTTP status, or 1 for ended and 2 for raised), tag(k: v).
    #: () -> untyped
    def current_span = nil

    # For integrations: begins a span that its handle (as of current_span, and with finish(status = nil)) ends, from
    # whatever thread. nil when nothing is recorded. outermost: for requests and jobs, which are never inside of one
    # that has returned on this fiber and only waits to be ended (Span#returned): that one ends then.
    #: (String, Symbol, String?, String?, Hash?, bool) -> untyped
    def begin_span(_name, _kind, _id, _trace, _tags, _outermost) = nil
  end

  NO_TAGS = {}.freeze

  # A filter of the app's that may fail: its fault must not become the app's, and what it has not let through is not recorded.
  class FilteredTags
    def initialize(filter)
      @filter = filter
      @told = false
    end

    def call(tags)
      @filter.call(tags)
    rescue StandardError => e
      warn "sdb: the filter of tags raised #{e.class}: #{e.message}; these tags are left out" unless @told
      @told = true
      NO_TAGS
    end
  end
  private_constant :NO_TAGS, :FilteredTags
end
