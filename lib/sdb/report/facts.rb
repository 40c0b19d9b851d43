# frozen_string_literal: true

module Sdb
  module Report
    # What a page says about the recording itself: who, how long, how often, and honestly what is missing.
    class Facts
      SUMMED = %i[torn torn_top gc unresolved queue_full ring gap_ns].freeze
      COUNTERS = { scans: :scans, truncated: :lost_truncated, threads: :lost_threads }.freeze
      private_constant :SUMMED, :COUNTERS

      #: (Profile) -> void
      def initialize(profile)
        @profile = profile
        @rings = profile.rings
        @status = @rings.map(&:status)
      end

      # functions: the document of the same selection, for its totals.
      #: (Profile::Functions) -> Hash[Symbol, untyped]
      def to_h(functions)
        identity.merge(
          samples: functions.samples, threads: functions.threads, total_ns: functions.total_ns,
          unnamed_ns: functions.unnamed_ns, duration_ns: @profile.duration_ns, states: states,
          ticks: sum(:ticks), late_ticks: sum(:late_ticks), scans: counter(:scans), lost: lost, cost: cost,
          warnings: @profile.warnings + recorders_warnings
        )
      end

      private

      def identity
        {
          process: process, ruby: @status.map(&:ruby).compact.uniq.join(", "), start: @rings.map { |r| r.entry.start }.min,
          interval_ns: @status.map { |status| status.effective_interval_ns || status.interval_ns }.compact.max
        }
      end

      def process
        return "#{@rings.size} processes" if @rings.map(&:pid).uniq.size > 1

        ring = @rings.first or return nil
        [ring.text["service"] || ring.entry.argv&.first(3)&.join(" "), "pid #{ring.pid}"].compact.join(" · ")
      end

      def states
        @profile.thread_infos.any? { |thread| thread.states == "inferred" } ? "inferred" : "exact"
      end

      def lost
        known = @profile.lost
        SUMMED.to_h { |name| [name, known[name]] }.compact.merge(
          { truncated: counter(:truncated), threads: counter(:threads) }.compact
        )
      end

      # Processes that share an environment share its mistakes.
      def recorders_warnings
        @status.flat_map { |status| status.warnings || [] }.tally
               .map { |line, times| times > 1 ? "#{line} (#{times} processes)" : line }
      end

      def cost
        costs = @status.map(&:cost).compact
        %i[cpu_ns gvl_ns rss_bytes].to_h { |name| [name, costs.sum { |cost| cost[name].to_i }] }
      end

      def sum(field)
        @status.sum { |status| status.public_send(field).to_i }
      end

      def counter(name)
        key = COUNTERS.fetch(name)
        values = @rings.map { |ring| ring.counters[key] }.compact
        values.sum unless values.empty?
      end
    end
  end
end
