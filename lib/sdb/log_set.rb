# frozen_string_literal: true

require_relative "errors"
require_relative "log_place"
require_relative "ring"

module Sdb
  # Which logs are meant: turns the RING... arguments of a command (files, dumps, directories, "latest", a pid)
  # into a list of files.
  class LogSet
    class << self
      # arguments: as typed, maybe empty: then $SDB_DIR, else ./tmp/sdb, else the user's default directory.
      # pid: only that process' logs (the newest when several have it).
      # NoRingError, with the places looked at, when nothing is found.
      #: (Array[String], ?pid: Integer?, ?env: Hash, ?cwd: String) -> LogSet ! NoRingError
      def resolve(arguments, pid: nil, env: ENV, cwd: Config.working_dir || "/")
        places = LogPlace.defaults(env, cwd)
        found = arguments.empty? ? from_defaults(places) : from_arguments(arguments, places, cwd)
        raise NoRingError, nothing_in(places) if found.empty?

        set = new(found.uniq, arguments.empty? ? places.filter_map(&:note) : [])
        pid ? set.only(pid, places.map(&:name)) : set
      end

      # Paths of all logs in the default places.
      #: (?Hash, ?String) -> Array[String]
      def default_logs(env = ENV, cwd = Config.working_dir || "/") = LogPlace.defaults(env, cwd).flat_map(&:logs)

      private

      # The first of them that holds any.
      def from_defaults(places)
        places.each do |place|
          files = place.logs
          return files unless files.empty?
        end
        []
      end

      # A pid beside directories is looked for in these.
      def from_arguments(arguments, places, cwd)
        pids, others = arguments.partition { |a| a.to_s.match?(/\A\d+\z/) && !File.exist?(expand(a.to_s, cwd)) }
        dirs, files = others.partition { |a| File.directory?(expand(a.to_s, cwd)) }
        return arguments.flat_map { |a| from_argument(a, places, cwd) } if pids.empty? || dirs.empty?

        there = new(dirs.flat_map { |a| from_argument(a, places, cwd) })
        pids.flat_map { |pid| there.only(pid.to_i, dirs).paths } + files.flat_map { |a| from_argument(a, places, cwd) }
      end

      def from_argument(argument, places, cwd)
        path = expand(argument.to_s, cwd)
        return filled(in_directory(path), path) if File.directory?(path)
        return [path] if File.exist?(path)
        return [new(filled(places.flat_map { |place| place.logs + place.recorded }, *places)).newest] if argument.to_s == "latest"
        return pid_files(argument.to_i, places) if argument.to_s.match?(/\A\d+\z/)

        raise NoRingError, "no such file or directory: #{argument}"
      end

      def expand(argument, cwd)
        File.expand_path(argument, cwd)
      rescue ArgumentError # the home of somebody who has none
        raise NoRingError, "no such file or directory: #{argument}"
      end

      def pid_files(pid, places)
        new(filled(from_defaults(places), *places)).only(pid, places.map(&:name)).paths
      end

      def filled(files, *places)
        files.empty? ? raise(NoRingError, nothing_in(places)) : files
      end

      # A directory that the user named is trusted; where it is shared our logs lie in our subfolder.
      def in_directory(dir)
        LogPlace.logs_in(dir) + LogPlace.logs_in(File.join(dir, "sdb-#{Process.euid}"))
      end

      def nothing_in(places)
        names = places.map { |place| place.is_a?(String) ? place : place.name }
        notes = places.filter_map { |place| place.note unless place.is_a?(String) }
        ["no log in #{names.join(" or ")}", *notes, "record one with `sdb record -- COMMAND`, or start the program with SDB=1 or -rsdb/auto"].join("; ")
      end
    end

    # @return [Array<String>] absolute paths, oldest first (by the start of the process); unreadable ones last
    attr_reader :paths

    def initialize(paths, notes = [])
      @warnings = notes.dup
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
