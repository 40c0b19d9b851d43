# frozen_string_literal: true

require_relative "config"
require_relative "errors"
require_relative "ring"

module Sdb
  # Which logs are meant: turns the RING... arguments of a command (files, dumps, directories, "latest", a pid)
  # into a list of files.
  class LogSet
    EXTENSIONS = %w[.sdb .sdbdump].freeze

    class << self
      # arguments: as typed, maybe empty: then $SDB_DIR, else ./tmp/sdb, else the user's default directory.
      # pid: only that process' logs (the newest when several have it).
      # NoRingError, with the places looked at, when nothing is found.
      #: (Array[String], ?pid: Integer?, ?env: Hash, ?cwd: String) -> LogSet ! NoRingError
      def resolve(arguments, pid: nil, env: ENV, cwd: Config.working_dir || "/")
        places = default_dirs(env, cwd)
        found = arguments.empty? ? from_defaults(places) : arguments.flat_map { |a| from_argument(a, places, cwd) }
        raise NoRingError, nothing_in(places) if found.empty?

        set = new(found.uniq)
        pid ? set.only(pid, places) : set
      end

      # Where logs are looked for when nothing else was said, first choice first.
      #: (?Hash, ?String) -> Array[String]
      def default_dirs(env = ENV, cwd = Config.working_dir || "/")
        own = env["SDB_DIR"].to_s
        return [Config.absolute(own, cwd)] unless own.empty?

        [File.join(cwd, "tmp", "sdb"), Config.user_dir]
      end

      private

      # The first of them that holds any.
      def from_defaults(places)
        places.each do |dir|
          files = in_directory(dir)
          return files unless files.empty?
        end
        []
      end

      def from_argument(argument, places, cwd)
        path = expand(argument.to_s, cwd)
        return filled(in_directory(path), path) if File.directory?(path)
        return [path] if File.exist?(path)
        return [new(filled(places.flat_map { |dir| in_directory(dir) + in_recorded(dir) }, *places)).newest] if argument.to_s == "latest"
        return pid_files(argument.to_i, places) if argument.to_s.match?(/\A\d+\z/)

        raise NoRingError, "no such file or directory: #{argument}"
      end

      def expand(argument, cwd)
        File.expand_path(argument, cwd)
      rescue ArgumentError # the home of somebody who has none
        raise NoRingError, "no such file or directory: #{argument}"
      end

      def pid_files(pid, places)
        new(filled(from_defaults(places), *places)).only(pid, places).paths
      end

      def filled(files, *places)
        files.empty? ? raise(NoRingError, nothing_in(places)) : files
      end

      def in_directory(dir)
        Dir.children(dir).select { |name| EXTENSIONS.include?(File.extname(name)) }.sort.map { |name| File.join(dir, name) }
           .select { |path| File.file?(path) }
      rescue Errno::ENOENT, Errno::ENOTDIR, Errno::EACCES
        []
      end

      # Each run of `sdb record` has a directory of its own.
      def in_recorded(dir)
        Dir.glob("record-*/", base: dir).flat_map { |run| in_directory(File.join(dir, run)) }
      end

      def nothing_in(places)
        "no log in #{places.join(" or ")}; record one with `sdb record -- COMMAND`, or start the program with SDB=1 or -rsdb/auto"
      end
    end

    # @return [Array<String>] absolute paths, oldest first (by the start of the process); unreadable ones last
    attr_reader :paths

    def initialize(paths)
      @warnings = []
      readable, unreadable = paths.map { |path| [path, read(path)] }.partition(&:last)
      sorted = readable.sort_by { |path, ring| [ring.start_realtime_ns, path] }
      @rings = sorted.map(&:last).freeze
      @paths = (sorted + unreadable).map { |path, _| path.dup.freeze }.freeze
      @warnings.freeze
    end

    # One Ring per readable file, in the order of #paths; unreadable ones are in #warnings.
    #: () -> Array[Ring]
    attr_reader :rings

    #: () -> Array[String]
    attr_reader :warnings

    # Path of the one that began last.
    #: () -> String
    def newest = @rings.empty? ? paths.last : @rings.last.path

    # The newest log of that process alone.
    #: (Integer, Array[String]) -> LogSet ! NoRingError
    def only(pid, places = [])
      ring = @rings.reverse.find { |r| r.pid == pid }
      raise NoRingError, "no log of process #{pid}#{" in #{places.join(" or ")}" if places.any?}" if ring.nil?

      LogSet.new([ring.path])
    end

    private

    def read(path)
      Ring.read(path)
    rescue FormatError, SystemCallError => e
      @warnings << (e.message.include?(path) ? e.message : "#{path}: #{e.message}")
      nil
    end
  end
end
