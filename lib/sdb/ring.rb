# frozen_string_literal: true

require "time"
require_relative "shared/opened"
require_relative "errors"
require_relative "native"
require_relative "value"

module Sdb
  # The fixed parts of one ring file: who wrote it and how it is doing. Cheap: reads three pages and the
  # chunk headers, no samples. Not to be mixed up with Profile, which reads it all.
  class Ring
    # `sdb ls`'s entry.
    class Entry < Value.of(:path, :pid, :ppid, :parent_ring, :service, :argv, :state, :start, :end, :retained_ns,
                           :ring_bytes)
    end

    # `sdb status`'s document, from the file alone.
    class Status < Document.of(:pid, :state, :reason, :ruby, :ring, :ring_bytes, :retained_ns, :interval_ns,
                               :effective_interval_ns, :ticks, :late_ticks, :thread_samples, :threads, :lost,
                               :symbols, :cost, :warnings)
    end

    LOST = %i[torn torn_top gc unresolved queue_full ring gap_ns].freeze

    class << self
      # Raises FormatError when the file is none of ours, Errno::* when it cannot be read.
      #: (String) -> Ring ! FormatError
      def read(path)
        log = open_log(path)
        new(path, log)
      ensure
        log&.close
      end

      # The native log, for those who go on reading. FormatError, Errno::*, UnsupportedError without the library.
      def open_log(path)
        missing = Native.reader_missing
        raise UnsupportedError, "logs cannot be read here: #{missing}" if missing

        Native::Log.new(path, Opened[path]&.fileno)
      end

      # Of this machine since it was started; nil where that cannot be told.
      def this_boot_id
        [File.read("/proc/sys/kernel/random/boot_id").delete("-").strip].pack("H*")
      rescue SystemCallError
        nil
      end

      # Of this machine since it started, as in the identity; nil where there is none.
      #: () -> String?
      def boot_id
        @boot_id ||= [File.read("/proc/sys/kernel/random/boot_id").delete("-\n")].pack("H*")
      rescue SystemCallError
        nil
      end

      # What a full disk does to a log.
      #: (Hash[Symbol, Integer]) -> String
      def small(counters) = "the disk is full: the log keeps its last #{counters[:room_bytes] >> 20} MiB only"

      # Realtime ns as the documents have it.
      #: (Integer) -> String
      def time_text(realtime_ns)
        Time.at(0, realtime_ns, :nsec).utc.iso8601(6)
      end
    end

    # state: "running", "parked", "stopped" (closed in order), "dead" (vanished: killed or crashed; also what a dump
    # holds), "creating".
    # text: Hash of the identity's key=value strings; counters: Hash of Symbol to Integer, only those the
    # writer knew; flags: Array of :states_exact, :yjit.
    # retained_ns: between the oldest tick kept and the last instant known (end_ns, ring time).
    attr_reader :path, :pid, :ppid, :text, :flags, :state, :counters, :reason, :interval_ns, :start_realtime_ns,
                :start_monotonic_ns, :boot_id, :retained_ns, :end_ns, :ring_bytes

    # Private: use Ring.read.
    def initialize(path, log)
      @path = File.expand_path(path).freeze
      take_identity(log.identity)
      @page = log.state_page
      @alive = log.alive?
      take_page
      chunks = log.chunks
      @end_ns = [@page ? @page[:at_ns] : 0, @counters.fetch(:last_tick_ns, 0), chunks.last&.last || 0].max
      @retained_ns = chunks.empty? ? 0 : @end_ns - chunks.first.last
      @state = decide_state
      freeze
    end

    # Its process holds the lock.
    def alive? = @alive == true

    def truncated? = @truncated

    def dump? = @dump

    # Up to when a process that had parked is known to have stayed as it was, as ring time: now while it lives, when it
    # was killed if a dump says so, else the last instant known. A parked process writes nothing.
    #: () -> Integer
    def parked_until_ns
      return [@killed_monotonic_ns - start_monotonic_ns, end_ns].max if @killed_monotonic_ns.positive?
      return end_ns unless state == "parked" && boot_id == Ring.this_boot_id

      [Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - start_monotonic_ns, end_ns].max
    end

    # Hash of the tags set on the whole process.
    #: () -> Hash[String, String]
    def tags
      text.select { |key, _| key.start_with?("tag.") }.transform_keys { |key| key.delete_prefix("tag.") }
    end

    #: () -> Array[String]
    def argv
      (0..).lazy.map { |n| text["argv.#{n}"] }.take_while(&:itself).to_a
    end

    # Realtime of the last instant known, by the state page's clock pair.
    #: () -> Integer
    def end_realtime_ns
      @page ? @page[:realtime_ns] + (end_ns - @page[:at_ns]) : start_realtime_ns + end_ns
    end

    #: () -> Entry
    def entry
      ended = %w[running parked creating].include?(state) ? nil : Ring.time_text(end_realtime_ns)
      Entry.new(path: path, pid: pid, ppid: ppid, parent_ring: text["parent_ring"], service: text["service"], argv: argv,
                state: state, start: Ring.time_text(start_realtime_ns), end: ended, retained_ns: retained_ns,
                ring_bytes: ring_bytes)
    end

    #: () -> Status
    def status
      c = Hash.new(0).merge(counters)
      Status.new(
        pid: pid, state: state, reason: reason, ruby: ruby, ring: path, ring_bytes: ring_bytes, retained_ns: retained_ns,
        interval_ns: interval_ns, effective_interval_ns: counters.fetch(:effective_interval_ns, interval_ns),
        ticks: c[:ticks], late_ticks: c[:late_ticks], thread_samples: c[:thread_samples],
        threads: { live: c[:threads_live], seen: c[:threads_seen] }, lost: lost,
        symbols: { count: c[:codes], recycled: c[:codes_recycled] },
        cost: { cpu_ns: c[:cpu_ns], gvl_ns: c[:gvl_ns], rss_bytes: c[:rss_bytes] }, warnings: warnings
      )
    end

    # "3.4.5 +YJIT"
    def ruby
      [text["ruby"], ("+YJIT" if flags.include?(:yjit))].compact.join(" ")
    end

    # {torn:, torn_top:, gc:, unresolved:, queue_full:, ring:, gap_ns:}
    #: () -> Hash[Symbol, Integer]
    def lost
      LOST.to_h { |name| [name, counters.fetch(:"lost_#{name}", 0)] }
    end

    private

    def take_identity(identity)
      @pid = identity[:pid]
      @ppid = identity[:ppid]
      @text = split_text(identity[:text]).freeze
      @flags = identity[:flags].freeze
      @written_state = identity[:state]
      @interval_ns = identity[:interval_ns]
      @start_realtime_ns = identity[:start_realtime_ns]
      @start_monotonic_ns = identity[:start_monotonic_ns]
      @boot_id = identity[:boot_id].freeze
      @ring_bytes = identity[:file_bytes]
      @truncated = identity[:truncated]
      @dump = identity[:dump]
      @process = identity.slice(:process_start_ticks, :pid_namespace)
      @killed_monotonic_ns = identity[:killed_monotonic_ns]
    end

    # For a key twice the first counts.
    def split_text(bytes)
      bytes.split("\0").each_with_object({}) do |entry, text|
        key, value = entry.dup.force_encoding(Encoding::UTF_8).scrub.split("=", 2)
        text[key.freeze] ||= value.freeze if value
      end
    end

    def take_page
      @counters = (@page ? @page[:counters] : {}).freeze
      text = @page && @page[:reason].dup.force_encoding(Encoding::UTF_8).scrub
      @reason = text unless text.nil? || text.empty?
      @written_state = :closed if @page && @page[:state] == :closed
    end

    def decide_state
      return "stopped" if @written_state == :closed
      return "creating" if @written_state == :creating && alive?
      return went_on? ? "stopped" : "dead" unless alive?

      counters[:parked] == 1 ? "parked" : "running"
    end

    # Without the lock, but the process is there: it became another program (exec).
    def went_on?
      return false if dump? || boot_id != Ring.boot_id || @process[:pid_namespace] != File.stat("/proc/self/ns/pid").ino

      ticks = File.read("/proc/#{pid}/stat").rpartition(") ").last.split[19].to_i
      return false unless ticks == @process[:process_start_ticks]

      @reason ||= "the process became another program"
      true
    rescue SystemCallError
      false
    end

    def warnings
      kept = text.select { |key, _| key.start_with?("warning.") }.values
      kept << Ring.small(counters) if counters[:ring_small] == 1
      kept << "the file is shorter than it says: truncated" if truncated?
      kept
    end
  end
end
