# frozen_string_literal: true

require_relative "../open"
require_relative "../profile"
require_relative "../ring"
require_relative "dump"
require_relative "last_stacks"

module Sdb
  module Oom
    # One sudden death, from a dump of sdb-oomd or from the ring that the process left: how it died as far as that
    # shows, and what it was doing. The parts that need the samples are read when asked for.
    class Death
      # An entry of `sdb oom list`. Times in ns; :at is RFC 3339.
      class Entry < Value.of(:path, :service, :pid, :at, :cause, :complete); end

      # `sdb oom show`. flags: Hash of Symbol to Integer. memory: last minute; spans: open ones; threads as in
      # `sdb stacks`, from the instant of the kill where a dump has them.
      class Report < Document.of(*Entry.fields, :flags, :memory, :spans, :threads, :kill); end

      MINUTE_NS = 60_000_000_000
      WINDOW_NS = -90_000_000_000 # read that much; chunks are whole

      # What of the facts is told beside the entry, in `kill`.
      TEXT_FACTS = %w[kill_source exe cmdline cgroup sender_comm].freeze
      NUMBER_FACTS = %w[sender_pid sender_uid target_tid uid oom_score_adj anon_rss_bytes file_rss_bytes shmem_rss_bytes
                        total_vm_bytes pgtables_bytes cgroup_limit_bytes cgroup_peak_bytes cgroup_usage_bytes capture_ns
                        capture_bytes capture_threads].freeze

      # path: a dump or a ring. FormatError when it is neither.
      #: (String) -> Death ! FormatError
      def self.read(path)
        new(path, Dump.dump?(path) ? Dump.read(path) : nil, Ring.read(path))
      rescue FormatError
        raise unless Dump.dump?(path)

        new(path, Dump.read(path), nil) # the ring inside is damaged or was none: the facts stay
      end

      attr_reader :path, :dump, :ring

      def initialize(path, dump, ring)
        @path = File.expand_path(path)
        @dump = dump
        @ring = ring
      end

      def cause = dump ? dump.cause : "unknown"

      #: () -> Entry
      def entry
        Entry.new(path: path, service: service, pid: pid, at: at, cause: cause, complete: dump ? dump.complete? : false)
      end

      #: () -> Report
      def report
        Report.new(**entry.to_h, flags: flags, memory: memory, spans: spans, threads: threads, kill: kill)
      end

      def service = dump&.[]("service") || ring&.text&.fetch("service", nil)
      # As the process knew itself where its ring says so: in a container the kernel's number is another.
      def pid = ring ? ring.pid : dump.number(:pid)

      def at
        ns = dump ? dump.number(:killed_realtime_ns) : ring.start_realtime_ns + ring.end_ns
        Ring.time_text(ns)
      end

      # When it was killed, or was last heard of, in ring time.
      def end_ns
        return ring.end_ns if dump.nil? || dump.number(:killed_monotonic_ns).zero?

        dump.number(:killed_monotonic_ns) - ring.start_monotonic_ns
      end

      def flags
        found = dump ? dump.flags.dup : {}
        found[:pre_oom_present] = pre_ooms.empty? ? 0 : 1
        found
      end

      def kill
        return {} unless dump

        texts = TEXT_FACTS.to_h { |key| [key.to_sym, dump[key]] }
        texts.merge(NUMBER_FACTS.to_h { |key| [key.to_sym, dump.number(key)] })
      end

      # Of the last minute; the ring's own records.
      #: () -> Array[Profile::Memory]
      def memory
        profile ? profile.memory.select { |row| row.at_ns >= end_ns - MINUTE_NS } : []
      end

      def pre_ooms
        profile ? profile.pre_ooms : []
      end

      # Requests and jobs that were in flight, longest first.
      #: () -> Array[Profile::Span]
      def spans
        profile ? profile.spans.spans.select(&:open).sort_by { |span| -span.wall_ns } : []
      end

      # Those first that say most: what ran for a request or job, what ran, what waited for one.
      #: () -> Array[Profile::ThreadStack]
      def threads
        last = profile ? profile.stacks.threads : []
        found = dump.nil? || ring.nil? ? last : LastStacks.new(dump, ring, profile, last).threads
        found.each_with_index.sort_by { |thread, index| [thread.state == "running" ? 0 : 1, thread.span ? 0 : 1, index] }.map(&:first)
      end

      # Whether the stacks are from the instant of the kill, and not the last sample.
      def stacks_of_the_kill? = dump ? dump.threads.any? : false

      # The last minute and some, nil when there is no readable ring.
      #: () -> Profile?
      def profile
        @profile ||= ring && Profile.new([path], window: WINDOW_NS..)
      end

      def warnings
        dump&.threads # proves them
        found = dump ? dump.warnings : []
        profile ? found + profile.warnings : found + ["the ring in it cannot be read"]
      end
    end
  end
end
