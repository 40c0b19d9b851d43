# frozen_string_literal: true

require_relative "sdb/version"
require_relative "sdb/errors"
require_relative "sdb/span"

# An always-on profiler. `require "sdb"` starts and patches nothing, unless SDB=1 is in the environment (then it is
# what `require "sdb/auto"` does).
module Sdb
  autoload :Recorder, "#{__dir__}/sdb/recorder"
  autoload :Profile, "#{__dir__}/sdb/profile"
  autoload :Config, "#{__dir__}/sdb/config"
  autoload :Native, "#{__dir__}/sdb/native"
  autoload :Prometheus, "#{__dir__}/sdb/prometheus"
  autoload :Rack, "#{__dir__}/sdb/rack"
  private_constant :Native

  @auto = false

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

    # Opens ring files, dumps or directories; see sdb/open.rb, which takes this method's place when first called.
    #: (*String) -> Profile ! NoRingError
    unless method_defined?(:open, false) # sdb/open was loaded first
      def open(*paths, **options)
        singleton_class.send(:remove_method, :open)
        require_relative "sdb/open"
        open(*paths, **options)
      end
    end

    # Whether sdb/auto records and arranged the app's frameworks (sdb/integrations.rb).
    #: () -> bool
    def auto? = @auto

    # Whether this process and host can be profiled; see sdb/doctor.rb, which takes this method's place when first called.
    #: (?measure: bool) -> Hash[Symbol, untyped]
    unless method_defined?(:doctor, false)
      def doctor(**options)
        singleton_class.send(:remove_method, :doctor)
        require_relative "sdb/doctor"
        doctor(**options)
      end
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

require_relative "sdb/auto" if ENV["SDB"] == "1"
require_relative "sdb/rails/railtie" if defined?(Rails::Railtie) # the rake tasks; no more than that without sdb/auto
