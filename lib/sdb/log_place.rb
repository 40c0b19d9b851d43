# frozen_string_literal: true

require_relative "config"
require_relative "errors"
require_relative "native"

module Sdb
  # A place where logs are looked for although nobody named it: $SDB_DIR, tmp/sdb, the user's own below the temp dir.
  # Others may have been there first. So from a folder that is ours all logs are taken (ext/format/log_dir.h says which
  # one is, for the recorder as well), and from another one its subfolder of ours and the files that belong to us.
  class LogPlace
    EXTENSIONS = %w[.sdb .sdbdump].freeze

    class << self
      # First choice first.
      #: (?Hash, ?String) -> Array[LogPlace]
      def defaults(env = ENV, cwd = Config.working_dir || "/")
        given = env["SDB_DIR"].to_s
        return [named(Config.absolute(given, cwd))] unless given.empty?

        [named(File.join(cwd, "tmp", "sdb")), user]
      end

      # A directory for new logs of this user below the temp dir; made when it is missing.
      #: () -> String ! UnsupportedError
      def make_user_dir = made(*needed.user(Config.temporary_dir, true))

      # The same for one that the user named: itself, or its subfolder of ours where others may write to it.
      #: (String) -> String ! UnsupportedError
      def make_named_dir(dir) = made(*needed.named(dir, true))

      # The logs in a directory, whoever wrote them.
      #: (String) -> Array[String]
      def logs_in(dir)
        Dir.children(dir).select { |name| EXTENSIONS.include?(File.extname(name)) }.sort
           .map { |name| File.join(dir, name) }.select { |path| File.file?(path) }
      rescue SystemCallError
        []
      end

      private

      def named(dir)
        own, = native&.named(dir, false)
        new(dir, own, shared: own.nil? || own != real(dir))
      end

      def user
        name = Config.user_dir
        own, = native&.user(Config.temporary_dir, false)
        taken = File.symlink?(name) || (File.exist?(name) && own != real(name))
        new(name, own, note: ("#{name} is another user's: not read" if taken))
      end

      def made(path, reason) = path || raise(UnsupportedError, reason)

      def needed
        missing = Native.reader_missing
        raise UnsupportedError, "logs cannot be read here: #{missing}" if missing

        Native::LogDir
      end

      def native = Native.reader_missing ? nil : Native::LogDir

      def real(dir)
        File.realpath(dir)
      rescue SystemCallError
        nil
      end
    end

    # The name to tell people; a line about what is not read, or nil; the directory that is ours, or nil.
    attr_reader :name, :own, :note

    def initialize(name, own, shared: false, note: nil)
      @name = name
      @own = own
      mine, others = shared ? self.class.logs_in(name).partition { |path| mine?(path) } : [[], []]
      @loose = mine
      @note = note || ("#{name}: #{others.size} of other users left out; name the files to read them" if others.any?)
    end

    # Paths of the logs that are ours.
    #: () -> Array[String]
    def logs = @loose + (own ? self.class.logs_in(own) : [])

    # Each run of `sdb record` has a directory of its own.
    #: () -> Array[String]
    def recorded
      return [] unless own

      Dir.glob("record-*/", base: own).flat_map { |run| self.class.logs_in(File.join(own, run)) }
    end

    private

    def mine?(path)
      stat = File.lstat(path)
      stat.file? && stat.owned?
    rescue SystemCallError
      false
    end
  end
  private_constant :LogPlace
end
