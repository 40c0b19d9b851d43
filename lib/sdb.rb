# frozen_string_literal: true

if defined?(Sdb::LIB) && __dir__ != Sdb::LIB
  # The environment brought in one sdb and the bundle has another. Two at once cannot be: the first goes on, also for what
  # the app requires of the second (sdb/rack, sdb/tasks).
  unless defined?(Sdb::OTHER)
    Sdb.const_set(:OTHER, __dir__)
    warn "sdb: #{Sdb::VERSION} in #{Sdb::LIB} is loaded already; the one in #{__dir__} is not used"
  end
  return
end

require_relative "sdb/version"
require_relative "sdb/errors"
require_relative "sdb/span"

# An always-on profiler. `require "sdb"` starts and patches nothing, unless SDB=1 is in the environment (then it is
# what `require "sdb/auto"` does).
module Sdb
  # Where this copy's files are. All that is loaded later is loaded from here.
  LIB = __dir__

  autoload :Recorder, "#{__dir__}/sdb/recorder"
  autoload :Profile, "#{__dir__}/sdb/profile"
  autoload :Config, "#{__dir__}/sdb/config"
  autoload :Native, "#{__dir__}/sdb/native"
  autoload :Prometheus, "#{__dir__}/sdb/prometheus"
  autoload :Rack, "#{__dir__}/sdb/integrations/rack"
  autoload :Rails, "#{__dir__}/sdb/integrations/rails"
  autoload :LogSet, "#{__dir__}/sdb/log_set"
  autoload :Doctor, "#{__dir__}/sdb/doctor"
  private_constant :Native, :Doctor

  @auto = nil

  class << self
    # Starts recording in this process. Idempotent: a second call returns the recorder that runs.
    #
    # May be called in a signal handler, like stop and status.
    #
    # Never raises for what the host cannot do: then the recorder is disabled, and Sdb.status says why. A wrong
    # argument raises ArgumentError.
    #
    # @param interval [Float] seconds between two ticks
    # @param dir [String, nil] where the ring is created; nil: $SDB_DIR, tmp/sdb in a Rails app, else per user
    # @param ring [Integer] bytes of the ring file
    # @param max_cpu [Float] fraction of one core that the recorder may cost
    # @param service [String, nil] a name for this process in reports
    # @param tags [Hash] on every sample of this process
    #: (?interval: Float, ?dir: String?, ?ring: Integer, ?max_cpu: Float, ?service: String?, ?tags: Hash) -> Recorder
    def start(**options) = with_locks { Recorder.start(**options) }

    # Ends the recording and seals the ring.
    # @return [String, nil] the ring's path
    #: () -> String?
    def stop = with_locks { Recorder.stop }

    # What the recorder does and costs, as in `sdb status --json` with symbol keys. Readable after stop.
    #: () -> Hash[Symbol, untyped]
    def status = with_locks { Recorder.status }

    # Records (if nothing records yet) while the block runs.
    # @param threads [Array<Thread>, nil] only these; nil: all
    # @return [Sdb::Profile] of the time the block took
    #: (?threads: Array[Thread]?, **untyped) { () -> untyped } -> Profile
    def profile(threads: nil, **options, &block) = Recorder.profile(threads: threads, **options, &block)

    # A profile of ring files, dumps, directories (all rings in them), or "latest"; without arguments of the
    # default directories. NoRingError when there is none.
    #: (*String, ?pid: Integer?, ?window: Range[Integer]?) -> Profile ! NoRingError
    def open(*paths, pid: nil, window: nil) = Profile.new(LogSet.resolve(paths, pid: pid).paths, window: window)

    # Whether this process and host can be profiled, and what is missing, with the fix for each thing; see doctor.rb.
    #: (?measure: bool) -> Hash[Symbol, untyped]
    def doctor(measure: false, config: Config.resolve) = Doctor.new(config).examine(measure: measure)

    # Whether the environment started the recording, and what the app's frameworks do becomes spans
    # (integrations/README.md).
    #: () -> bool
    def auto? = @auto == true

    # What SDB=1 and sdb/auto do. Once; never raises.
    #: () -> void
    def start_by_environment
      return unless @auto.nil?

      @auto = false
      require_relative "sdb/program"
      return if Program.tool?

      start
      return unless Recorder.current&.running?

      @auto = true
      require_relative "sdb/integrations"
      Integrations.arrange
    rescue StandardError, LoadError => e
      warn "sdb: not recording: #{e.message}"
    end

    private

    SIGNAL_WAIT_S = 1 # much longer than a start or a stop takes
    private_constant :SIGNAL_WAIT_S

    # A signal handler may wait for no lock, neither ours nor that of require: there a thread does it. The handler does not
    # wait for it for ever, because it may itself have interrupted whoever holds the lock.
    def with_locks(&)
      Mutex.new.synchronize {} # rubocop:disable Lint/EmptyBlock
      yield
    rescue ThreadError => e
      raise unless e.message.include?("trap context")

      Thread.new(&).tap { |thread| thread.report_on_exception = false }.join(SIGNAL_WAIT_S)&.value
    end
  end
end

Sdb.start_by_environment if ENV["SDB"] == "1"
require_relative "sdb/integrations/rails/railtie" if defined?(Rails::Railtie) # the rake tasks; no more than that without sdb/auto
