# frozen_string_literal: true

require_relative "file"
require_relative "records"

module RingEncoder
  # A ring told as a story. All times are milliseconds from the ring's start, in any order:
  #
  #   RingEncoder.write("x.sdb", pid: 4242, service: "shop") do
  #     code :main, "<main>", path: "/app/main.rb", line: 1
  #     code :work, "Foo#work", path: "/app/foo.rb", line: 10
  #     code :sleep, "Kernel#sleep"                  # no path: a C method
  #     thread :main, tid: 4242, main: true
  #     at 0,  main: running("main:3 work:12")       # root first; work:12 is line 12 of code :work
  #     at 10, main: blocked("main:3 sleep")         # it blocked just at 10 ms
  #     at 30, main: running("main:3 work:12", age: 0.25)
  #     span 5..35, :main, id: "r-1", name: "UsersController#index"
  #     finish 40
  #   end
  #
  # The scanner's side is worked out: a tick each interval (none in gaps and parks), wait and blocked time from
  # the states told, CPU time equal to the busy time unless `cpu:` says otherwise.
  class Story
    Moment = Struct.new(:state, :stack, :age_ns, :cpu_ns, :gc_ns, :more, keyword_init: true)
    Told = Struct.new(:name, :slot, :serial, :tid, :birth_ns, :end_ns, :flags, :label, :moments, keyword_init: true)
    # until, lasting and thread: what is repeated at a chunk's start (:span, :switch, :tags of a thread).
    Event = Struct.new(:at, :write, :until, :lasting, :thread)
    Code = Struct.new(:id, :name, :options, keyword_init: true)

    attr_reader :file, :threads, :codes, :events, :rolls, :silences, :interval_ns, :block_bytes, :last_ns,
                :page_options, :area_codes

    def initialize(chunks: 3, area_bytes: 256 << 10, interval: 1, block_bytes: 4096, service: nil, ruby: "3.4.5",
                   gem: "0.1.0", argv: [], tags: {}, parent_ring: nil, app_root: nil, text: {}, **identity)
      @interval_ns = ns(interval)
      @block_bytes = block_bytes
      words = { ruby: ruby, gem: gem, service: service, parent_ring: parent_ring, app_root: app_root }.compact
      words = words.merge(text).merge(tags.transform_keys { |k| "tag.#{k}" })
      argv.each_with_index { |word, n| words["argv.#{n}"] = word }
      @file = File.new(chunk_count: chunks, area_bytes: area_bytes, text: words, interval_ns: @interval_ns, **identity)
      @threads = {}
      @codes = {}
      @events = []
      @rolls = []
      @silences = []
      @page_options = {}
      @last_ns = nil
    end

    # path: makes it Ruby code; its lines then are first_line + instruction index, or as `lines:` says.
    # addresses: iseq and method entry, for the raw frames of a dump.
    def code(key, name, path: nil, line: 0, kind: path ? :ruby : :c, named: true, base: nil, lines: nil, class_name: "",
             addresses: nil)
      id = @codes.size + 1
      options = { kind: kind, path: path.to_s, first_line: line, class_name: class_name }
      options[:addresses] = addresses if addresses
      if kind == :ruby
        lines ||= (0...100).to_h { |n| [n, line + n] }
        options.update(base: base || (0x7f00_0000_0000 + id * 0x10000), instructions: [lines.keys.max + 1, 100].max,
                       lines: lines)
      end
      @codes[key.to_s] = Code.new(id: id, name: named ? name : nil, options: options)
    end

    def thread(key, tid:, name: nil, main: false, own: false, inferred: false, born: 0, dies: nil, slot: nil, serial: nil)
      flags = { main: main, own: own, inferred: inferred }.select { |_, on| on }.keys
      count = @threads.size
      @threads[key] = Told.new(name: key, slot: slot || count, serial: serial || (count + 1), tid: tid, label: name,
                               birth_ns: ns(born), end_ns: dies && ns(dies), flags: flags, moments: {})
    end

    def at(time, **threads)
      threads.each { |key, moment| @threads.fetch(key).moments[ns(time)] = moment }
    end

    %i[running gvl_wait blocked gc].each do |state|
      define_method(state) do |stack = "", age: nil, cpu: nil, gc: nil, more: []|
        Moment.new(state: state, stack: frames(stack), age_ns: age && ns(age), cpu_ns: cpu && ns(cpu),
                   gc_ns: gc && ns(gc), more: more)
      end
    end

    def gap(range, reason = :late) = @silences << [ns(range.begin), ns(range.end), reason]
    def park(range) = @silences << [ns(range.begin), ns(range.end), nil]
    def new_chunk(time) = @rolls << ns(time)
    def finish(time) = @last_ns = ns(time)

    # Any record at a time: yields the ChunkRecords.
    def record(time, lasting: nil, till: Float::INFINITY, on: nil, &block)
      @events << Event.new(ns(time), block, lasting ? till : 0, lasting, on)
    end

    # range.end nil: still open. ended: what only its end tells (status, cpu, gvl_wait, blocked, gc in ms, ...).
    def span(range, on, name:, id: "", number: nil, kind: "request", parent: 0, trace: "", tags: {}, begin_name: name,
             **ended)
      number ||= (@spans = (@spans || 0) + 1)
      serial = @threads.fetch(on).serial
      from = ns(range.begin)
      till = range.end && ns(range.end)
      record(range.begin, lasting: :span, till: till || Float::INFINITY) do |r|
        r.span_begin serial, number, from, kind: kind, name: begin_name, parent: parent, request_id: id,
                                           trace_id: trace, tags: tags
      end
      switch(range.begin, on, number)
      return number unless till

      switch(range.end, on, parent)
      %i[cpu gvl_wait blocked gc].each { |key| ended[key] = ns(ended[key]) if ended[key] }
      record(range.end) { |r| r.span_end(number, till, name: name, **ended) }
      number
    end

    def switch(time, on, number)
      record(time, lasting: :switch, on: on) { |r| r.span_switch(@threads.fetch(on).serial, number, ns(time)) }
    end

    def tags(time, on, **tags)
      record(time, lasting: :tags, on: on) { |r| r.tags(@threads.fetch(on).serial, ns(time), tags) }
    end

    def mark(time, text) = record(time) { |r| r.mark(ns(time), text) }

    def gc_run(range, on, **facts)
      serial = on ? @threads.fetch(on).serial : 0
      record(range.end) { |r| r.gc(serial, ns(range.begin), ns(range.end) - ns(range.begin), **facts) }
    end

    def memory(time, rss, **facts) = record(time) { |r| r.memory(ns(time), rss, **facts) }

    def pre_oom(time, percent, **values)
      record(time) { |r| r.pre_oom(ns(time), percent, values.transform_keys(&:to_s)) }
    end

    # The state page: state :live or :closed, reason, counters by name.
    def status(state: nil, reason: nil, **counters)
      @page_options = { state: state, reason: reason, counters: counters }
      @file.identity[:state] = state if state
    end

    def ns(milliseconds) = (milliseconds * 1_000_000).round

    private

    # "main:3 work:12 sleep" -> [[code, line or nil], ...]
    def frames(stack)
      stack.to_s.split.map do |word|
        key, line = word.split(":")
        [@codes.fetch(key), line && Integer(line)]
      end
    end
  end
end
