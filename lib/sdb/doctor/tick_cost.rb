# frozen_string_literal: true

module Sdb
  class Doctor
    # What an empty tick costs on this host, and which interval that affords within max_cpu.
    class TickCost
      SECONDS = 1.0
      # The governor lengthens the interval by doubling (core/pacing.h).
      STEPS = 5

      def initialize(config, recorder)
        @config = config
        @recorder = recorder
      end

      # The check, with figures: {same_core_ns:, same_off_ns:, other_core_ns:, other_off_ns:, own_cpu_ns:, displaced_ns:,
      # cpus:, ticks:, disturbed:, affords_same_core_ns:, affords_other_core_ns:}; an affords_ is the interval, nil for none.
      #: () -> Hash[Symbol, untyped]
      def check
        figures = @recorder.doctor_tick_cost(SECONDS)
        return failed(figures) if figures.is_a?(String)

        same, other = afforded(figures)
        figures = figures.merge(affords_same_core_ns: same, affords_other_core_ns: other)
        { name: "tick cost", ok: same && same <= @config.interval_ns ? true : nil, detail: words(figures), fix: fix(figures), figures: figures }
      end

      private

      def failed(reason)
        { name: "tick cost", ok: nil, detail: "could not be measured: #{reason}", fix: nil }
      end

      # [on the app's core, on another], ns. What was measured is a tick that reads nothing, taken from a loop with small
      # caches; the governor counts what one takes from an app (displaced_ns), so the answer must, too.
      def afforded(figures)
        same = interval_for([figures[:same_core_ns], figures[:own_cpu_ns] + figures[:displaced_ns]].max)
        other = interval_for([figures[:other_core_ns], 0].max + figures[:own_cpu_ns]) if figures[:other_core_ns]
        [same, other]
      end

      # The shortest of nominal, twice, four times ... at which ticks of this cost stay within max_cpu.
      def interval_for(cost_ns)
        return @config.interval_ns if @config.max_cpu.zero?

        (0..STEPS).map { |step| @config.interval_ns << step }.find { |interval| cost_ns <= interval * @config.max_cpu }
      end

      def words(figures)
        same = "a tick takes #{micro(figures[:same_core_ns])} us (+- #{micro(figures[:same_off_ns])}) from a thread on its core"
        other = ", #{micro(figures[:other_core_ns])} us (+- #{micro(figures[:other_off_ns])}) from one on another" if figures[:other_core_ns]
        "#{same}#{other}; #{budget_words(figures)}#{" (other programs disturbed this measurement)" if figures[:disturbed]}"
      end

      def budget_words(figures)
        return "the CPU budget is off" if @config.max_cpu.zero?

        cores = [["the app's core", figures[:affords_same_core_ns]], (["another", figures[:affords_other_core_ns]] if figures[:other_core_ns])]
        affords = cores.compact.map { |name, ns| "#{ns ? "#{format("%g", ns / 1e6)} ms" : "no interval"} on #{name}" }
        "#{format("%g", @config.max_cpu * 100)}% of a core affords #{affords.join(", ")}"
      end

      def fix(figures)
        same = figures[:affords_same_core_ns]
        return if same && same <= @config.interval_ns

        "keep a core free for sampling, or raise SDB_MAX_CPU; otherwise sdb samples less often by itself"
      end

      def micro(nanoseconds)
        format("%.1f", nanoseconds / 1000.0)
      end
    end
  end
end
