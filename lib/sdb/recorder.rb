# frozen_string_literal: true

require_relative "errors"
require_relative "native"
require_relative "version"
require_relative "config"

module Sdb
  # The recording of this process: one at a time. Everything here is cheap and never raises for what the host
  # cannot do; see Sdb.start.
  class Recorder
    @reason = nil
    @lock = Mutex.new

    class << self
      # The recorder that runs, or nil.
      attr_reader :current

      #: (**untyped) -> Recorder
      def start(**options)
        config = Config.resolve(**options)
        undisturbed do
          next if @current&.running?

          @current = new(config)
          @current.send(:begin_recording)
        end
        @current
      end

      #: () -> String?
      def stop
        return if Native.recorder_missing

        tell_of_log
        undisturbed { Native::Recorder.stop }
      end

      # In a forked child, from the two places of Ruby that fork (lib/sdb/fork.rb).
      #: () -> void
      def after_fork = Native::Recorder.after_fork

      # A forked child makes its log a moment later, perhaps as another user: on sdb's own thread, when that went wrong.
      #: () -> void
      def tell_of_log = @current&.send(:tell_of_log)

      #: () -> Hash[Symbol, untyped]
      def status = (@current || new(Config.resolve)).status

      #: (?threads: Array[Thread]?, **untyped) { () -> untyped } -> Profile
      def profile(threads: nil, **options)
        started = !@current&.running?
        recorder = start(**options)
        raise UnsupportedError, "cannot profile here: #{recorder.reason}" unless recorder.running?

        path = recorder.path
        from = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        begin
          yield
        ensure
          to = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
          started ? stop : Native::Recorder.flush
        end
        Block.new(path, from, to, threads&.map { |t| t.native_thread_id }).profile
      end

      private

      # Half a start or half a stop would be left behind, or a rescue of ours take what is the caller's: what other
      # threads send (Thread#kill, Timeout) arrives when it is done.
      def undisturbed(&)
        Thread.handle_interrupt(Object => :never) { @lock.synchronize(&) }
      end
    end

    # @return [Config]
    attr_reader :config
    # Why nothing is recorded, or nil.
    # @return [String, nil]
    attr_reader :reason

    def initialize(config)
      @config = config
      @reason = nil
      @attempted = false
    end

    #: () -> bool
    def running? = !Native.recorder_missing && Native::Recorder.running?

    # Path of the ring, nil when there is none.
    #: () -> String?
    def path = Native.recorder_missing ? nil : Native::Recorder.status[:path]

    # Everything recorded so far is on the file when this returns.
    #: () -> void
    def flush
      Native::Recorder.flush if running?
      nil
    end

    # `sdb status`'s document as a Hash with symbol keys.
    #: () -> Hash[Symbol, untyped]
    def status
      native = Native.recorder_missing ? nil : Native::Recorder.status
      counters = native ? native[:counters] : Hash.new(0)
      { schema: 1, pid: Process.pid, state: state_of(native), reason: reason_of(native), ruby: self.class.ruby_text,
        ring: native && native[:path], ring_bytes: native ? native[:ring_bytes] : 0,
        retained_ns: counters[:last_tick_ns], interval_ns: config.interval_ns,
        effective_interval_ns: counters[:effective_interval_ns],
        ticks: counters[:ticks], late_ticks: counters[:late_ticks], thread_samples: counters[:thread_samples],
        scans: counters[:scans],
        threads: { live: counters[:threads_live], seen: counters[:threads_seen] },
        lost: lost_of(counters),
        symbols: { count: counters[:codes], recycled: counters[:codes_recycled] },
        cost: { cpu_ns: counters[:cpu_ns], gvl_ns: counters[:gvl_ns], rss_bytes: counters[:rss_bytes],
                displaced_ticks: counters[:displaced_ticks] },
        warnings: config.warnings + surroundings + warnings_of(native, counters) }
    end

    # "3.4.5 +YJIT", "4.0.1 +ZJIT", as in the log.
    #: () -> String
    def self.ruby_text
      jits = %i[YJIT ZJIT].select { |name| RubyVM.const_defined?(name) && RubyVM.const_get(name).enabled? }
      [RUBY_VERSION, *jits.map { |name| "+#{name}" }].join(" ")
    end

    private

    def begin_recording
      @attempted = true
      (config.warnings + surroundings).each { |line| warn "sdb: #{line}" }
      @reason = Native.recorder_missing || Native::Recorder.start(native_options)
      return warn("sdb: not recording: #{@reason}") if @reason

      tell_of_log
      require_relative("fork")
    rescue StandardError => e
      # whatever our own code did wrong: the app goes on
      @reason = "#{e.class}: #{e.message}"
      warn "sdb: not recording: #{@reason}"
    end

    def tell_of_log
      native = Native::Recorder.status
      return if native[:log_reason].nil? || @told == Process.pid

      @told = Process.pid
      warn "sdb: #{native[:refused] ? "not recording: #{native[:log_reason]}" : elsewhere(native)}"
    end

    def elsewhere(native) = "#{native[:log_reason]}; the log is #{native[:path]}"

    def native_options
      own = config.dir == Config.user_dir
      { dir: own ? "" : config.dir, dir_named: config.dir_named?, tmp: Config.temporary_dir,
        ring_bytes: config.ring_bytes, interval_ns: config.interval_ns,
        max_cpu_ppm: (config.max_cpu * 1_000_000).round, keep: config.keep, text: identity_text,
        yjit: self.class.ruby_text.include?("YJIT") }
    end

    def identity_text
      pairs = { "ruby" => self.class.ruby_text, "gem" => VERSION, "service" => config.service,
                "app_root" => Config.working_dir, "argv" => ("0" if ENV["SDB_ARGV"] == "0") }
      config.tags.each { |k, v| pairs["tag.#{k}"] = v }
      config.warnings.each_with_index { |line, n| pairs["warning.#{n}"] = line }
      pairs.compact.map { |k, v| "#{utf8(k)}=#{utf8(v).delete("\0")}\0".b }.join
    end

    # As every name in the log (ext/recorder/vm/utf8.h). Bytes that have no encoding count as UTF-8.
    def utf8(text)
      text = text.to_s
      text = text.dup.force_encoding(Encoding::UTF_8) if [Encoding::BINARY, Encoding::US_ASCII].include?(text.encoding)
      text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub
    rescue EncodingError
      text.dup.force_encoding(Encoding::UTF_8).scrub
    end

    def state_of(native)
      return "disabled" if native.nil? || @reason
      return native[:parked] ? "parked" : "running" if native[:running]

      native[:silent] || native[:refused] ? "disabled" : "stopped"
    end

    def reason_of(native)
      return Native.recorder_missing if native.nil?
      return "this process was forked by a thread that Ruby does not know" if native[:silent]

      return native[:log_reason] if native[:refused]

      @reason || (@attempted ? nil : "not started")
    end

    # What of this Ruby keeps answers from being complete.
    def surroundings
      boxes = defined?(::Ruby::Box) && ::Ruby::Box.respond_to?(:enabled?) && ::Ruby::Box.enabled?
      boxes ? ["RUBY_BOX=1: what frameworks in another box do may not become spans by itself"] : []
    end

    def lost_of(counters)
      { torn: counters[:lost_torn], torn_top: counters[:lost_torn_top], gc: counters[:lost_gc],
        unresolved: counters[:lost_unresolved], queue_full: counters[:lost_queue_full], ring: counters[:lost_ring],
        gap_ns: counters[:lost_gap_ns] }
    end

    def warnings_of(native, counters)
      lines = []
      errno = counters[:write_errno]
      lines << "the log could not be written: #{SystemCallError.new(errno).message}" if errno.positive?
      lines << small(counters) if counters[:ring_small] == 1
      lines << elsewhere(native) if native && native[:log_reason] && !native[:refused]
      lines << "#{counters[:lost_threads]} threads are not recorded" if counters[:lost_threads].positive?
      if native && native[:safe_read] == "none"
        lines << "this sandbox forbids process_vm_readv and /proc/self/mem: fibers are not seen"
      end
      lines
    end

    def small(counters)
      require_relative "ring"
      Ring.small(counters)
    end

    # The profile of one Sdb.profile block.
    class Block
      def initialize(path, from_ns, to_ns, tids)
        @path = path
        @from_ns = from_ns
        @to_ns = to_ns
        @tids = tids
      end

      # @return [Profile] with the block's time, and its threads, as filters that are always on
      def profile
        require_relative "open"
        start = Ring.read(@path).start_monotonic_ns
        Sdb.open(@path).within(from: [@from_ns - start, 0].max, to: @to_ns - start, thread: @tids)
      end
    end
    private_constant :Block
  end
end
