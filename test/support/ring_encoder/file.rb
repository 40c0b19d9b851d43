# frozen_string_literal: true

require_relative "bytes"

module RingEncoder
  # The fixed parts of a ring: identity, state pages, and where areas and chunks lie. Knows no records.
  class File
    MAGIC = "SDB\nb\xb1\xc2\xa7".b.freeze
    CHUNK_MAGIC = 0x6b6e75686383f09f
    AREA_MAGIC = 0x6165726183f09f53
    PAGE = 4096
    IDENTITY_ROOM = 2 * PAGE
    CHUNK_BYTES = 1 << 20
    STATES = { creating: 1, live: 2, closed: 3 }.freeze
    FLAGS = { states_exact: 1, yjit: 2 }.freeze
    BLOCK_MAX = 1 << 16
    COUNTERS = %i[
      ticks late_ticks displaced_ticks parks thread_samples scans frames_read sample_records
      lost_torn lost_torn_top lost_gc lost_unresolved lost_queue_full lost_ring lost_gap_ns lost_truncated lost_threads
      cpu_ns gvl_ns scan_ns rss_bytes codes codes_recycled threads_live threads_seen effective_interval_ns bytes_written
      chunks last_tick_ns symbol_bytes events max_cpu_ppm parked write_errno room_bytes ring_small
    ].freeze

    attr_reader :chunk_count, :identity

    # identity: overrides of the fields below; text: Hash of key => value.
    def initialize(chunk_count: 3, area_bytes: 256 << 10, text: {}, **identity)
      @chunk_count = chunk_count
      @area_bytes = area_bytes
      @text = text
      @identity = {
        major: 1, minor: 0, state: :live, start_monotonic_ns: 1_000_000_000_000,
        start_realtime_ns: 1_764_460_800_000_000_000, process_start_ticks: 5000, interval_ns: 1_000_000,
        pid: 4242, ppid: 1, pid_namespace: 4_026_531_836, flags: %i[states_exact], clock_ticks_per_s: 100,
        boot_id: "0123456789abcdef"
      }.merge(identity)
      @areas = {}
      @chunks = {}
      @pages = {}
    end

    # blocks: payloads of one area or chunk, in order. The seq decides where it lies.
    def chunk(seq, first_ns, blocks) = @chunks[seq] = area(CHUNK_MAGIC, seq, first_ns, blocks)
    def symbol_area(generation, blocks) = @areas[generation] = area(AREA_MAGIC, generation, 0, blocks)

    # which: :a or :b. counters: Hash by the names of COUNTERS.
    def state_page(which, seq:, state:, at_ns:, counters: {}, reason: "")
      values = Array.new(128, 0)
      counters.each { |name, value| values[COUNTERS.index(name) || raise(ArgumentError, "no counter #{name}")] = value }
      realtime = @identity[:start_realtime_ns] + at_ns
      page = [MAGIC, seq, 0, STATES.fetch(state), at_ns, realtime, COUNTERS.size, reason.bytesize, *values, reason.b]
             .pack("a8Q<L<L<Q<Q<L<L<Q<128a3024")
      page[16, 4] = [Bytes.crc32c(page)].pack("L<")
      @pages[which] = page
    end

    def area_a_off = 4 * PAGE
    def area_b_off = area_a_off + @area_bytes
    def chunks_off = area_b_off + @area_bytes
    def chunk_off(seq) = chunks_off + (seq % @chunk_count) * CHUNK_BYTES
    def file_bytes = chunks_off + @chunk_count * CHUNK_BYTES

    def write(path)
      ::File.open(path, "wb", 0o600) do |file|
        file.truncate(file_bytes)
        put(file, 0, identity_bytes)
        put(file, 2 * PAGE, @pages[:a]) if @pages[:a]
        put(file, 3 * PAGE, @pages[:b]) if @pages[:b]
        @areas.sort.each { |generation, bytes| put(file, generation.odd? ? area_a_off : area_b_off, bytes) }
        @chunks.sort.each { |seq, bytes| put(file, chunk_off(seq), bytes) }
      end
      path
    end

    def self.block(seq, payload)
      raise ArgumentError, "block of #{payload.bytesize} bytes" if payload.bytesize > BLOCK_MAX

      length = [payload.bytesize].pack("L<")
      length + [Bytes.crc32c([seq].pack("Q<"), length, payload)].pack("L<") + payload
    end

    def identity_bytes
      i = @identity
      text = String.new(encoding: Encoding::BINARY)
      @text.each do |key, value|
        pair = "#{key}=#{value}\0".b
        text << pair if text.bytesize + pair.bytesize <= IDENTITY_ROOM - 256
      end
      flags = i[:flags].sum { |flag| FLAGS.fetch(flag) }
      fields = [
        MAGIC, 0x01020304, i[:major], i[:minor], 8, 0, file_bytes, area_a_off, area_b_off, @area_bytes, chunks_off,
        CHUNK_BYTES, @chunk_count, i[:start_monotonic_ns], i[:start_realtime_ns], i[:process_start_ticks],
        i[:interval_ns], i[:pid], i[:ppid], i[:pid_namespace], flags, i[:clock_ticks_per_s], i[:boot_id], "",
        text.bytesize, 0
      ].pack("a8L<S<S<L<L<Q<Q<Q<Q<Q<Q<Q<Q<Q<Q<Q<L<L<Q<L<L<a16a96L<L<")
      fields[252, 4] = [Bytes.crc32c(fields, text)].pack("L<") # with state and crc as zero
      fields[20, 4] = [STATES.fetch(i[:state])].pack("L<")
      fields + text
    end

    private

    def area(magic, seq, first_ns, blocks)
      header = [magic, seq, first_ns, 0, 0, 0, 0, 0, 0].pack("Q<Q<Q<L<L<Q<Q<Q<Q<")
      header[24, 4] = [Bytes.crc32c(header)].pack("L<")
      header + blocks.map { |payload| self.class.block(seq, payload) }.join
    end

    def put(file, offset, bytes)
      file.seek(offset)
      file.write(bytes)
    end
  end
end
