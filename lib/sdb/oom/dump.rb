# frozen_string_literal: true

require_relative "../errors"
require_relative "../shared/opened"
require_relative "crc32c"

module Sdb
  module Oom
    # What a dump holds beside its ring (ext/format/DUMP.md): how the process was killed, and what its threads
    # were executing, as addresses. Reads hostile bytes: a clear FormatError or part of it, nothing else.
    class Dump
      MAGIC = "SDDMP\xb1\xc2\xa7".b
      HEADER_BYTES = 4096
      SECTIONS_MAX = 64
      FACTS = 1
      THREADS = 2
      COUNTERS = 3
      RING = 6
      LIMITS = { FACTS => 1 << 20, THREADS => 16 << 20, COUNTERS => 1 << 12 }.freeze
      THREAD_FLAGS = { truncated: 1, read_error: 2, no_stack: 4, torn_state: 8 }.freeze

      Section = Struct.new(:type, :crc, :off, :bytes)
      # iseq, pc, method, env: Integer addresses of the dead process
      RawFrame = Struct.new(:iseq, :pc, :method, :env)
      # frames: Array of RawFrame, newest first; flags: Array of Symbol
      RawThread = Struct.new(:slot, :serial, :tid, :state, :since_monotonic_ns, :span_id, :thread_flags, :frame_total,
                             :flags, :frames)

      #: (String) -> bool
      def self.dump?(path)
        Opened.file?(path) && Opened.open(path) { |file| file.read(8) } == MAGIC
      rescue SystemCallError
        false
      end

      #: (String) -> Dump ! FormatError
      def self.read(path)
        Opened.open(path) { |file| new(path, file) }
      end

      # path: Absolute. facts: Hash of String to String, without the flags. flags: Hash of Symbol to Integer.
      # warnings: what of it could not be believed, one line each.
      attr_reader :path, :facts, :flags, :warnings

      def initialize(path, file)
        @path = File.expand_path(path)
        @warnings = []
        @size = file.size
        read_header(file)
        entries = body(file, FACTS).to_s.split("\0").to_h { |entry| entry.partition("=").values_at(0, 2) }
        flags, @facts = entries.partition { |key, _| key.start_with?("flag.") }.map(&:to_h)
        @flags = flags.to_h { |key, value| [key.delete_prefix("flag.").to_sym, value.to_i] }
      end

      def [](key) = @facts[key.to_s]

      def number(key) = self[key].to_i

      #: () -> String
      def cause
        %w[oom sigkill].include?(self["cause"]) ? self["cause"] : "unknown"
      end

      def complete? = @flags[:complete] == 1

      # Raw frames of every thread.
      #: () -> Array[RawThread]
      def threads = @threads ||= read_threads

      # The recorder's counters as they were in memory, by their number in ring_format.h.
      #: () -> Array[Integer]
      def counters
        Opened.open(@path) { |file| body(file, COUNTERS) }.to_s.unpack("Q*")
      end

      # @return [Range, nil] where in the file the ring lies
      def ring_range
        section = @sections.find { |s| s.type == RING }
        section && (section.off...section.off + section.bytes)
      end

      private

      def read_threads
        bytes = Opened.open(@path) { |file| body(file, THREADS) }.to_s
        threads = []
        at = 0
        while at + 128 <= bytes.bytesize
          record_bytes, flags, slot, count = bytes.byteslice(at, 16).unpack("L4")
          break if record_bytes != 128 + count * 32 || at + record_bytes > bytes.bytesize

          threads << thread(bytes.byteslice(at, record_bytes), flags, slot)
          at += record_bytes
        end
        threads
      end

      def read_header(file)
        header = file.read(HEADER_BYTES).to_s
        raise FormatError, "#{@path}: not a dump" unless header.start_with?(MAGIC)
        raise FormatError, "#{@path}: cut off" if header.bytesize < HEADER_BYTES

        tag, major, _, count, crc = header.byteslice(8, 16).unpack("LSSLL")
        raise FormatError, "#{@path}: a newer format (#{major})" unless tag == 0x01020304 && major == 1

        header[20, 4] = "\0\0\0\0".b
        raise FormatError, "#{@path}: damaged header" if Crc32c.of(header) != crc || count > SECTIONS_MAX

        @sections = Array.new(count) { |i| Section.new(*header.byteslice(64 + 24 * i, 24).unpack("LLQQ")) }
      end

      def body(file, type)
        section = @sections.find { |s| s.type == type } or return
        if section.bytes > LIMITS.fetch(type) || section.off > @size || section.bytes > @size - section.off
          @warnings |= ["section #{type} lies outside of the file"]
          return
        end
        bytes = file.pread(section.bytes, section.off)
        return bytes if Crc32c.of(bytes) == section.crc

        @warnings |= ["section #{type} is damaged"]
        nil
      rescue EOFError
        nil
      end

      def thread(record, flags, slot)
        total, serial, tid, state, since, _, _, _, span, thread_flags = record.byteslice(16, 80).unpack("Q10")
        words = record.byteslice(128..).unpack("Q*")
        names = THREAD_FLAGS.select { |_, bit| flags.anybits?(bit) }.keys
        RawThread.new(slot, serial, tid, state, since, span, thread_flags, total, names,
                      words.each_slice(4).map { |frame| RawFrame.new(*frame) })
      end
    end
  end
end
