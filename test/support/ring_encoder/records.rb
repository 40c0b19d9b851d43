# frozen_string_literal: true

require_relative "bytes"

module RingEncoder
  # Appends records to blocks of at most `block_bytes`. Base of ChunkRecords and SymbolRecords.
  class Records
    attr_reader :blocks

    def initialize(block_bytes: 4096)
      @block_bytes = block_bytes
      @blocks = []
      @open = String.new(encoding: Encoding::BINARY)
    end

    def seal
      @blocks << @open unless @open.empty?
      @open = String.new(encoding: Encoding::BINARY)
      self
    end

    def bytes = @blocks.sum { |b| b.bytesize + 8 } + @open.bytesize + 8

    # A record as it stands: for hostile and unknown ones.
    def raw(record)
      record = record.b
      seal if @open.bytesize + record.bytesize > @block_bytes
      @open << record
      self
    end

    def sized(type, payload) = raw(Bytes.varint(type) + Bytes.sized(payload))
  end

  # Records of a symbol area.
  class SymbolRecords < Records
    KINDS = { ruby: 1, c: 2, invalid: 3 }.freeze

    def initialize(**options)
      super
      @strings = { "" => 0 }
    end

    def string(text)
      @strings[text] ||= begin
        sized(1, text)
        @strings.size
      end
    end

    # lines: { instruction index => line }. addresses: iseq and method entry; [] as an earlier writer had it.
    def code(id, name, kind: :ruby, base: 0, instructions: 0, path: "", class_name: "", first_line: 0, lines: {},
             addresses: [0, 0])
      path_id = string(path)
      class_id = string(class_name)
      index = 0
      line = first_line
      runs = lines.map do |at, on|
        run = Bytes.varint(at - index) + Bytes.zigzag(on - line)
        index = at
        line = on
        run
      end
      sized(2, Bytes.varints(id, KINDS.fetch(kind), base, instructions, path_id, class_id, first_line) +
               Bytes.sized(name) + Bytes.varint(lines.size) + runs.join + Bytes.varints(*addresses))
    end
  end

  # Records of one chunk. Keeps what is chunk-local: nodes, strings, each slot's previous node.
  class ChunkRecords < Records
    STATES = { running: 0, gvl_wait: 1, blocked: 2, gc: 3 }.freeze
    MORE = { torn_top: 4, truncated: 8, no_stack: 16 }.freeze
    THREAD_FLAGS = { own: 1, main: 2, inferred: 4 }.freeze
    GC_FLAGS = { major: 1, mark: 2, sweep: 4, compact: 8 }.freeze
    GAPS = { late: 1, fork: 2, write: 3, paused: 4 }.freeze
    T = {
      tick: 1, node: 2, interval: 3, park: 4, gap: 5, thread: 16, thread_end: 17, clock: 18, gc: 19, memory: 20,
      counters: 21, string: 22, span_begin: 23, span_end: 24, span_switch: 25, tags: 26, mark: 27, pre_oom: 28
    }.freeze

    attr_reader :seq

    def initialize(seq, **options)
      super(**options)
      @seq = seq
      @nodes = {}
      @strings = {}
      @slot_node = Hash.new(0)
      @slot_serial = {}
      @interval_us = nil
    end

    def interval(microseconds)
      @interval_us = microseconds
      raw Bytes.varints(T[:interval], microseconds)
    end

    # dt: microseconds since the tick before. long: the long form even where the short one fits.
    def tick(delta_us, long: false)
      deviation = delta_us - @interval_us
      return raw([0x40 | (deviation + 32)].pack("C")) if deviation.between?(-32, 31) && !long

      raw Bytes.varint(T[:tick]) + Bytes.zigzag(deviation)
    end

    def node(parent, code, where = 0)
      @nodes[[parent, code, where]] ||= begin
        id = @nodes.size + 1
        raw Bytes.varints(T[:node], id - parent, code, where)
        id
      end
    end

    # cpu, wait, blocked, gc, age, elapsed: microseconds; cpu is cpu_us - busy_us. more: names of MORE.
    # elapsed must be given for a slot's first SAMPLE in the chunk and after another serial.
    def sample(slot, state, node: nil, cpu: 0, wait: 0, blocked: 0, gc: 0, age: nil, elapsed: nil, more: [])
      flags = more.sum { |name| MORE.fetch(name) }
      flags |= 0x01 if gc.positive?
      flags |= 0x02 if age
      flags |= 0x20 if elapsed
      has_node = !node.nil? && node != @slot_node[slot]
      head = 0x80 | (STATES.fetch(state) << 5)
      head |= 0x10 if has_node
      head |= 0x08 unless cpu.zero?
      head |= 0x04 if wait.positive?
      head |= 0x02 if blocked.positive?
      head |= 0x01 if flags.positive?
      record = [head].pack("C") + Bytes.varint(slot)
      record << Bytes.varint(flags) if flags.positive?
      record << Bytes.zigzag(node - @slot_node[slot]) if has_node
      record << Bytes.zigzag(cpu) unless cpu.zero?
      record << Bytes.varint(wait) if wait.positive?
      record << Bytes.varint(blocked) if blocked.positive?
      record << Bytes.varint(gc) if gc.positive?
      record << Bytes.varint(age) if age
      record << Bytes.varint(elapsed) if elapsed
      @slot_node[slot] = node if has_node
      raw record
    end

    def park = raw(Bytes.varint(T[:park]))
    def gap(microseconds, reason) = raw(Bytes.varints(T[:gap], microseconds, GAPS.fetch(reason)))

    def thread(slot, serial, tid, birth_ns, flags: [], name: nil)
      bits = flags.sum { |flag| THREAD_FLAGS.fetch(flag) } | (name ? 8 : 0)
      @slot_node.delete(slot) unless @slot_serial[slot] == serial
      @slot_serial[slot] = serial
      sized T[:thread], Bytes.varints(slot, serial, tid, birth_ns, bits) + name.to_s.b
    end

    def thread_end(slot, serial, end_ns) = sized(T[:thread_end], Bytes.varints(slot, serial, end_ns))
    def clock(rel_ns, realtime_ns) = sized(T[:clock], Bytes.varints(rel_ns, realtime_ns))

    # flags: major, mark, sweep, compact.
    def gc(serial, begin_ns, duration_ns, flags: [], count: 0, live_slots: 0, malloc_bytes: 0)
      bits = flags.sum { |flag| GC_FLAGS.fetch(flag) }
      sized T[:gc], Bytes.varints(serial, bits, begin_ns, duration_ns, count, live_slots, malloc_bytes)
    end

    def memory(rel_ns, rss, usage: 0, limit: 0) = sized(T[:memory], Bytes.varints(rel_ns, rss, usage, limit))
    def counters(values) = sized(T[:counters], Bytes.varints(values.size, *values))

    def string(text)
      @strings[text] ||= begin
        id = @strings.size + 1
        sized T[:string], Bytes.varint(id) + text.b
        id
      end
    end

    def span_begin(serial, id, begin_ns, kind:, name:, parent: 0, request_id: "", trace_id: "", tags: {})
      kind = string(kind)
      name = string(name)
      pairs = string_pairs(tags)
      sized T[:span_begin], Bytes.varints(serial, id, parent, begin_ns, kind, name) + Bytes.sized(request_id) +
                            Bytes.sized(trace_id) + pairs
    end

    def span_end(id, end_ns, name:, status: 0, cpu: 0, gvl_wait: 0, blocked: 0, gc: 0, allocations: 0, tags: {})
      name = string(name)
      pairs = string_pairs(tags)
      sized T[:span_end], Bytes.varints(id, end_ns, name, status, cpu, gvl_wait, blocked, gc, allocations) + pairs
    end

    def span_switch(serial, id, rel_ns) = sized(T[:span_switch], Bytes.varints(serial, id, rel_ns))

    def tags(serial, rel_ns, tags)
      pairs = string_pairs(tags)
      sized T[:tags], Bytes.varints(serial, rel_ns) + pairs
    end

    def mark(rel_ns, text) = sized(T[:mark], Bytes.varint(rel_ns) + text.b)

    def pre_oom(rel_ns, percent, values)
      ids = values.map { |key, value| Bytes.varints(string(key), value) }
      sized T[:pre_oom], Bytes.varints(rel_ns, percent, ids.size) + ids.join
    end

    private

    def string_pairs(hash)
      ids = hash.map { |key, value| Bytes.varints(string(key.to_s), string(value.to_s)) }
      Bytes.varint(ids.size) + ids.join
    end
  end
end
