# frozen_string_literal: true

require "rbconfig"
require_relative "host"

module Sdb
  class Doctor
    # One Hash {name:, ok:, detail:, fix:} for each thing that profiling needs (ok true or false) or gains from (true or nil).
    class Checks
      # core/ring_writer.c keeps so much of the file in memory (WINDOW_BYTES).
      MEMLOCK_BYTES = 1 << 18
      SAFE_READ_FIX = "let the container's seccomp profile allow process_vm_readv (Docker: --security-opt seccomp=PROFILE), " \
                      "or opening /proc/self/mem"

      def initialize(config, host, recorder, missing, layout_reason)
        @config = config
        @host = host
        @recorder = recorder
        @missing = missing
        @layout_reason = layout_reason
        @facts = recorder&.doctor_facts
      end

      def all
        needs + gains
      end

      private

      def needs
        native = @recorder ? [layout, safe_read] : []
        [ruby, platform, library, *native, directory, settings]
      end

      def gains
        native = @recorder ? [states] : []
        [*native, jit, cores, memlock, memory_limit, seccomp]
      end

      def check(name, ok, detail, fix = nil)
        { name: name, ok: ok, detail: detail, fix: (fix unless ok) }
      end

      def ruby
        check("ruby", RUBY_ENGINE == "ruby", "#{RUBY_ENGINE} #{RUBY_VERSION}", "sdb reads the internals of CRuby, so the app must run on CRuby")
      end

      def platform
        config = RbConfig::CONFIG
        known = config["host_os"].include?("linux") && %w[x86_64 aarch64].include?(config["host_cpu"])
        check("platform", known, "#{config["host_os"]} on #{config["host_cpu"]}",
              "the recorder needs Linux on x86-64 or arm64; logs recorded there can be read here")
      end

      def library
        check("recorder", @recorder ? true : false, @missing || "built and loaded",
              "install a C compiler, make and Ruby's headers (Debian: apt-get install build-essential ruby-dev), then reinstall the gem")
      end

      def layout
        check("layout", @layout_reason.nil?, @layout_reason || "this process matches the table for Ruby #{RUBY_VERSION[/\A\d+\.\d+/]}",
              "update sdb, or report this line together with `ruby -v`; sdb reads nothing from a Ruby whose layout it cannot verify")
      end

      def safe_read
        way = @facts[:safe_read]
        detail = way == "none" ? "neither process_vm_readv nor /proc/self/mem is allowed" : way
        check("safe read", way != "none", detail, SAFE_READ_FIX)
      end

      def directory
        dir = @config.dir
        problem = directory_problem(dir)
        check("ring directory", problem.nil?, problem || "#{dir} is writable", "set SDB_DIR to a directory that this user can write to")
      end

      # As the recorder will see it when it starts (core/ring_file.c): it makes missing directories, and takes an existing
      # one only when nobody else can put files in its place.
      def directory_problem(dir)
        return foreign_problem(dir) if File.exist?(dir)

        parent = File.dirname(dir)
        parent = File.dirname(parent) until File.exist?(parent)
        return "#{parent} is not a directory" unless File.directory?(parent)

        "#{dir} does not exist and cannot be created: #{parent} is not writable" unless File.writable?(parent)
      end

      def foreign_problem(dir)
        stat = File.stat(dir)
        return "#{dir} is not a directory" unless stat.directory?
        return "#{dir} belongs to another user" unless stat.uid == Process.euid
        return "anybody can replace files in #{dir}" if stat.world_writable? && !stat.sticky?

        "#{dir} is not writable" unless stat.writable? && stat.executable?
      end

      def settings
        check("settings", @config.warnings.empty? || nil,
              @config.warnings.empty? ? "all SDB_* variables are valid" : @config.warnings.join("; "),
              "correct these variables; until then the defaults apply")
      end

      def states
        exact = @facts[:exact_states]
        check("thread states", exact || nil, exact ? "exact, from GVL events" : "inferred from CPU clocks; GVL waits are not seen",
              "use Ruby 3.2 or later, which reports when a thread waits for the GVL")
      end

      def jit
        return check("jit", true, "off") unless jit_name

        early = RUBY_VERSION < "3.3"
        check("jit", early ? nil : true, "#{jit_name} is on#{"; the newest frame of a running thread is left out" if early}",
              "use Ruby 3.3 or later, which publishes a frame only once it is complete")
      end

      def jit_name
        return "YJIT" if defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?

        "ZJIT" if defined?(RubyVM::ZJIT) && RubyVM::ZJIT.respond_to?(:enabled?) && RubyVM::ZJIT.enabled?
      end

      def cores
        n = @host.cores
        check("cores", n > 1 || nil, n > 1 ? "#{n}: sampling can run beside the app" : "1: each sample takes the core from the app",
              "a second core would help; with one, SDB_MAX_CPU limits what sampling takes")
      end

      def memlock
        soft, = @host.memlock
        enough = soft == Process::RLIM_INFINITY || soft >= MEMLOCK_BYTES
        limit = soft == Process::RLIM_INFINITY ? "unlimited" : "#{soft >> 10} KiB"
        check("locked memory", enough || nil, "RLIMIT_MEMLOCK is #{limit}#{", less than a log's window" unless enough}",
              "ulimit -l #{MEMLOCK_BYTES >> 10} (systemd: LimitMEMLOCK=#{MEMLOCK_BYTES >> 10}K): " \
              "then the last moments before an out-of-memory kill are written without delay")
      end

      def memory_limit
        limit = @host.memory_limit
        check("memory limit", true, limit ? "#{limit >> 20} MiB by cgroup; memory is logged against it" : "no cgroup limit is set")
      end

      def seccomp
        words = { 0 => "none", 1 => "strict", 2 => "a filter is active; what it forbids shows above" }
        check("seccomp", true, words.fetch(@host.seccomp, "the kernel does not say"))
      end
    end
  end
end
