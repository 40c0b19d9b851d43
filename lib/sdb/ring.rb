# frozen_string_literal: true

require_relative "errors"
require_relative "value"

module Sdb
  # The fixed parts of one ring file: who wrote it and how it is doing. Cheap: reads three pages and the
  # chunk headers, no samples. Not to be mixed up with Profile, which reads it all.
  class Ring
    # `sdb ls`'s entry.
    class Entry < Value.of(:path, :pid, :ppid, :parent_ring, :service, :argv, :state, :start, :end, :retained_ns,
                           :ring_bytes); end

    # `sdb status`'s document, from the file alone.
    class Status < Document.of(:pid, :state, :reason, :ruby, :ring, :ring_bytes, :retained_ns, :interval_ns,
                               :effective_interval_ns, :ticks, :late_ticks, :thread_samples, :threads, :lost,
                               :symbols, :cost, :warnings); end

    # Raises FormatError when the file is none of ours, Errno::* when it cannot be read.
    #: (String) -> Ring ! FormatError
    def self.read(path); end

    # state: "running", "parked", "stopped" (closed in order), "disabled", "dead" (vanished: killed or crashed).
    # alive?: its process holds the lock.
    # text: Hash of the identity's key=value strings; counters: Hash of Symbol to Integer.
    attr_reader :path, :pid, :ppid, :text, :flags, :state, :counters, :reason, :interval_ns, :start_realtime_ns,
                :start_monotonic_ns, :boot_id, :retained_ns, :end_ns, :ring_bytes

    #: () -> Entry
    def entry; end

    #: () -> Status
    def status; end
  end
end
