# frozen_string_literal: true

require_relative "config"
require_relative "errors"

module Sdb
  # Which logs are meant: turns the RING... arguments of a command (files, dumps, directories, "latest", a pid)
  # into a list of files.
  class LogSet
    EXTENSIONS = %w[.sdb .sdbdump].freeze

    # @return [Array<String>] absolute paths, oldest first
    attr_reader :paths

    # arguments: as typed, maybe empty: then $SDB_DIR, else ./tmp/sdb, else the user's default directory.
    # pid: only that process' logs (the newest when several have it).
    # NoRingError, with the places looked at, when nothing is found.
    #: (Array[String], ?pid: Integer?, ?env: Hash, ?cwd: String) -> LogSet ! NoRingError
    def self.resolve(arguments, pid: nil, env: ENV, cwd: Dir.pwd); end

    # One Ring per readable file; unreadable ones are in #warnings.
    #: () -> Array[Ring]
    def rings; end

    #: () -> Array[String]
    def warnings; end
  end
end
