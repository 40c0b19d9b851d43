# frozen_string_literal: true

require_relative "../sdb"

require_relative "config"
require_relative "errors"
require_relative "native"
require_relative "version"

module Sdb
  # Sdb.doctor: can the running Ruby be profiled on this host, and what is missing, with the fix for each thing.
  #
  # Starts nothing and leaves nothing behind, also beside a running recorder. measure: true spins on one or two cores for
  # about a second to find what a tick costs here, and so which interval max_cpu affords.
  #
  # @return [Hash] {ok: true or false, ruby:, platform:, sdb: Strings, checks: [{name:, ok: true, false or nil for
  #   neither, detail:, fix: String or nil}], layout: [{field:, table:, measured: bytes or nil, compared:}]}; a check that
  #   measured has its figures under :figures. The layout is empty when nothing could be measured.
  #
  # recorder: what lib/sdb's native library offers, nil when it is missing; missing: why.
  class Doctor
    require_relative "doctor/checks"
    require_relative "doctor/tick_cost"

    #: (Config, ?missing: String?, ?recorder: untyped, ?proc_dir: String, ?cgroup_dir: String) -> void
    def initialize(config, missing: Native.recorder_missing, recorder: (Native::Recorder unless missing),
                   proc_dir: "/proc", cgroup_dir: "/sys/fs/cgroup")
      @config = config
      @missing = missing
      @recorder = recorder
      @host = Host.new(proc_dir, cgroup_dir)
    end

    def examine(measure: false)
      layout = @recorder ? @recorder.doctor_layout : { rows: [], reason: nil }
      checks = Checks.new(@config, @host, @recorder, @missing, layout[:reason]).all
      checks << TickCost.new(@config, @recorder).check if measure && @recorder
      { ok: checks.none? { |check| check[:ok] == false }, ruby: RUBY_DESCRIPTION, platform: RUBY_PLATFORM, sdb: VERSION,
        checks: checks, layout: layout[:rows] }
    end
  end
  private_constant :Doctor
end
