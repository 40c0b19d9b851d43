# frozen_string_literal: true

require_relative "errors"
require_relative "shared/units"

module Sdb
  # What a recorder is started with: Ruby keywords first, then the SDB_* environment, then the default. Frozen.
  #
  # A wrong environment variable must never keep an app from booting: it gives a line in #warnings and the
  # default. A wrong Ruby argument is a programmer's error and raises.
  class Config
    # interval_ns: between two ticks. dir: where rings are created. ring_bytes: size of one.
    # max_cpu: governor's budget as a fraction of one core, 0 for none. keep: dead rings kept in dir.
    # service: name or nil. tags: Hash of Strings, set on the whole process. warnings: Array of lines.
    attr_reader :interval_ns, :dir, :ring_bytes, :max_cpu, :keep, :service, :tags, :warnings

    DEFAULTS = {
      interval: 0.001, dir: nil, ring: 64 << 20, max_cpu: 0.05, keep: 20, service: nil, tags: {}.freeze
    }.freeze

    # Every option: its variable, how the variable's text is read, what is allowed, how to say it.
    OPTIONS = {
      interval: {
        env: "SDB_INTERVAL", parse: ->(s) { Units.duration_ns(s) / 1e9 }, not: "not a time",
        valid: ->(v) { v.is_a?(Numeric) && v.real? && v >= 0.00002 && v <= 10 },
        expect: "seconds from 0.00002 to 10, such as 0.001 or 1ms"
      },
      dir: {
        env: "SDB_DIR", parse: ->(s) { s }, not: "not a directory name",
        valid: ->(v) { v.nil? || ((v = path_of(v)) && !v.empty? && !v.include?("\0") && v.bytesize < 900) },
        expect: "a directory name"
      },
      ring: {
        env: "SDB_RING", parse: ->(s) { Units.bytes(s) }, not: "not a size",
        valid: ->(v) { v.is_a?(Integer) && v >= 4 << 20 && v <= 64 << 30 },
        expect: "bytes from 4 MiB to 64 GiB, such as 67108864 or 64M"
      },
      max_cpu: {
        env: "SDB_MAX_CPU", parse: ->(s) { Units.fraction(s) }, not: "not a fraction of a core",
        valid: ->(v) { v.is_a?(Numeric) && v.real? && v >= 0 && v <= 1 },
        expect: "a fraction of a core from 0 (no limit) to 1, such as 0.05"
      },
      keep: {
        env: "SDB_KEEP", parse: ->(s) { Integer(s, 10) }, not: "not a number of files",
        valid: ->(v) { v.is_a?(Integer) && v >= 0 && v <= 1_000_000 },
        expect: "how many logs of finished processes to keep, such as 20"
      },
      service: {
        env: "SDB_SERVICE", parse: ->(s) { s }, not: "not a name",
        valid: ->(v) { v.nil? || ((v.is_a?(String) || v.is_a?(Symbol)) && !v.empty? && v.size <= 200) },
        expect: "a name of up to 200 characters"
      },
      tags: {
        env: "SDB_TAGS", parse: ->(s) { Units.tags(s) }, not: "not k=v,k2=v2",
        valid: ->(v) { v.respond_to?(:to_hash) && v.to_hash.keys.none? { |k| k.to_s.empty? } },
        expect: "a Hash of names and values"
      }
    }.freeze

    # @param env [Hash] usually ENV
    # @param cwd [String] what a relative directory and the Rails app are looked for under
    # @param arguments what Sdb.start was given; unknown names raise ArgumentError
    #: (?env: Hash, ?cwd: String, **untyped) -> Config ! ArgumentError
    def self.resolve(env: ENV, cwd: working_dir, **arguments)
      check_arguments(arguments)
      warnings = []
      values = OPTIONS.to_h do |name, option|
        value = arguments.fetch(name) { from_env(env, name, option, warnings) }
        [name, value]
      end
      given = values[:dir]
      values[:dir] = absolute(given, cwd, warnings)
      values[:dir_named] = !given.nil? && values[:dir] != default_dir(cwd: cwd)
      new(values, warnings)
    end

    # The directory this process works in, nil when it has been deleted.
    #: () -> String?
    def self.working_dir
      Dir.pwd
    rescue SystemCallError
      nil
    end

    # Where a process of this user keeps its rings when nothing else was said: tmp/sdb in a Rails app, else
    # sdb-<uid> under the temp dir.
    #: (?cwd: String) -> String
    def self.default_dir(cwd: working_dir)
      cwd && rails_app?(cwd) ? File.join(cwd, "tmp", "sdb") : user_dir
    end

    # What it is called unless another user has taken the name (ext/format/log_dir.h).
    #: () -> String
    def self.user_dir
      File.join(temporary_dir, "sdb-#{Process.euid}")
    end

    # As Dir.tmpdir, but without its gem, and without raising where there is none: whoever opens a file there says why not.
    #: () -> String
    def self.temporary_dir
      candidates = ENV.values_at("TMPDIR", "TMP", "TEMP") << "/tmp"
      candidates.find { |dir| dir && !dir.empty? && usable_by_us_alone?(dir) }&.then { |dir| File.expand_path(dir) } || "/tmp"
    end

    def self.usable_by_us_alone?(dir)
      stat = File.stat(dir)
      stat.directory? && stat.writable? && (!stat.world_writable? || stat.sticky?)
    rescue SystemCallError, ArgumentError
      false
    end
    private_class_method :usable_by_us_alone?

    # A directory that is named relative to what does not exist (no working directory, no home for "~") is not the app's
    # trouble: then the default, and a line in warnings.
    #: (String?, String?, ?Array[String]) -> String
    def self.absolute(dir, cwd, warnings = [])
      path = path_of(dir) or return default_dir(cwd: cwd)
      return File.expand_path(path, cwd) if cwd || path.start_with?("/", "~")

      raise ArgumentError, "there is no working directory"
    rescue ArgumentError => e
      warnings << "the directory #{path[0, 80]}: #{e.message}; using #{shown_default(:dir)}"
      default_dir(cwd: cwd)
    end

    def self.rails_app?(cwd)
      File.file?(File.join(cwd, "config", "application.rb")) && File.file?(File.join(cwd, "config.ru"))
    end
    private_class_method :rails_app?

    def self.path_of(value)
      value.respond_to?(:to_path) ? value.to_path : (value if value.is_a?(String))
    end

    def self.check_arguments(arguments)
      arguments.each do |name, value|
        option = OPTIONS[name] or
          raise ArgumentError, "unknown option #{name}: (there are #{OPTIONS.keys.map { "#{_1}:" }.join(" ")})"
        next if value.nil? && DEFAULTS[name].nil?
        next if option[:valid].call(value)

        raise ArgumentError, "#{name}: #{value.inspect} is not #{option[:expect]}"
      end
    end
    private_class_method :check_arguments

    def self.from_env(env, name, option, warnings)
      text = env[option[:env]]
      return DEFAULTS[name] if text.nil? || text.empty?

      text = text.dup.force_encoding(Encoding::UTF_8).scrub("?")
      begin
        value = option[:parse].call(text)
      rescue ArgumentError, FloatDomainError
        problem = option[:not]
      else
        return value if option[:valid].call(value)

        problem = "must be #{option[:expect]}"
      end
      warnings << "#{option[:env]}=#{text[0, 80]}: #{problem}; using #{shown_default(name)}"
      DEFAULTS[name]
    end
    private_class_method :from_env

    def self.shown_default(name)
      case name
      when :dir then "the default directory"
      when :service then "none"
      when :tags then "no tags"
      when :ring then "64M"
      else DEFAULTS[name].to_s
      end
    end
    private_class_method :shown_default

    def initialize(values, warnings)
      @interval_ns = (values[:interval] * 1_000_000_000).round
      @dir = values[:dir].dup.freeze
      @dir_named = values[:dir_named]
      @ring_bytes = values[:ring]
      @max_cpu = values[:max_cpu].to_f
      @keep = values[:keep]
      @service = values[:service]&.to_s&.dup&.freeze
      @tags = values[:tags].to_hash.to_h { |k, v| [k.to_s.dup.freeze, v.to_s.dup.freeze] }.freeze
      @warnings = warnings.map(&:freeze).freeze
      freeze
    end
    private_class_method :new

    # Whether somebody said where logs go: then there or nowhere.
    #: () -> bool
    def dir_named? = @dir_named

    #: () -> Hash[Symbol, untyped]
    def to_h
      { interval_ns: interval_ns, dir: dir, ring_bytes: ring_bytes, max_cpu: max_cpu, keep: keep,
        service: service, tags: tags, warnings: warnings }
    end
  end
end
