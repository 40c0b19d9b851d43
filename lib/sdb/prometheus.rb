# frozen_string_literal: true

module Sdb
  # Sdb.status as text for Prometheus: the same figures under the same names, times in seconds.
  module Prometheus
    PREFIX = "sdb"
    CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

    # name => [type, help, where the value is in the status]. Names ending in _seconds are ns there.
    METRICS = {
      up: [:gauge, "1 while the recorder records, running or parked", ->(s) { %w[running parked].include?(s[:state]) ? 1 : 0 }],
      parked: [:gauge, "1 while no thread of the process can run", ->(s) { s[:state] == "parked" ? 1 : 0 }],
      ring_bytes: [:gauge, "size of the ring file", ->(s) { s[:ring_bytes] }],
      retained_seconds: [:gauge, "how far back the ring reaches", ->(s) { s[:retained_ns] }],
      interval_seconds: [:gauge, "nominal time between two ticks", ->(s) { s[:interval_ns] }],
      effective_interval_seconds: [:gauge, "time between two ticks now", ->(s) { s[:effective_interval_ns] }],
      ticks_total: [:counter, "passes of the scanner", ->(s) { s[:ticks] }],
      late_ticks_total: [:counter, "passes that began more than half an interval late", ->(s) { s[:late_ticks] }],
      thread_samples_total: [:counter, "threads seen, once per pass", ->(s) { s[:thread_samples] }],
      threads: [:gauge, "live threads", ->(s) { s[:threads][:live] }],
      threads_seen_total: [:counter, "threads since the recording began", ->(s) { s[:threads][:seen] }],
      symbols: [:gauge, "functions named so far", ->(s) { s[:symbols][:count] }],
      symbols_recycled_total: [:counter, "names given up for newer ones", ->(s) { s[:symbols][:recycled] }],
      cpu_seconds_total: [:counter, "CPU time of the scanner", ->(s) { s[:cost][:cpu_ns] }],
      gvl_seconds_total: [:counter, "time the recorder held the GVL", ->(s) { s[:cost][:gvl_ns] }],
      rss_bytes: [:gauge, "memory the recorder holds", ->(s) { s[:cost][:rss_bytes] }],
      displaced_ticks_total: [:counter, "passes that took the core from a running thread", ->(s) { s[:cost][:displaced_ticks] }],
      gap_seconds_total: [:counter, "time in which nothing was seen", ->(s) { s[:lost][:gap_ns] }]
    }.freeze

    class << self
      #: (?Hash) -> String
      def text(status = Sdb.status)
        lines = METRICS.flat_map { |name, (type, help, value)| metric(name, type, help, value.call(status)) }
        lines.concat(lost(status[:lost]), state(status))
        "#{lines.join("\n")}\n"
      end

      private

      def metric(name, type, help, value)
        head(name, type, help) << "#{PREFIX}_#{name} #{number(name, value)}"
      end

      def head(name, type, help) = ["# HELP #{PREFIX}_#{name} #{help}", "# TYPE #{PREFIX}_#{name} #{type}"]

      def number(name, value)
        value = value.to_i
        name.match?(/_seconds(_total)?\z/) ? format("%.9f", value / 1e9).sub(/\.?0+\z/, "") : value
      end

      def lost(lost)
        head(:lost_total, :counter, "samples and events that are not in the log, by cause") +
          lost.reject { |cause, _| cause == :gap_ns }.map { |cause, n| "#{PREFIX}_lost_total{cause=\"#{cause}\"} #{n}" }
      end

      # Why not, where it does not record: as a label, so that an alert can show it.
      def state(status)
        labels = { state: status[:state], reason: status[:reason].to_s, ruby: status[:ruby], version: VERSION }
        head(:info, :gauge, "the recorder's state in words") <<
          "#{PREFIX}_info{#{labels.map { |name, text| "#{name}=\"#{escape(text)}\"" }.join(",")}} 1"
      end

      def escape(text)
        text.to_s.scrub.gsub(/[\\"\n]/, "\\" => "\\\\", "\"" => "\\\"", "\n" => "\\n")
      end
    end
  end
end
