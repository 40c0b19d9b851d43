# frozen_string_literal: true

require "fileutils"
require_relative "errors"

module Sdb
  # The two variables with which each Ruby that a shell or a supervisor starts records itself: `sdb env` prints them,
  # `sdb record` sets them.
  module Environment
    FOLDER = File.join(__dir__, "env") # holds sdb_auto.rb alone; see there
    OPTION = "-rsdb_auto"
    NOT_POSSIBLE = "RUBYLIB cannot name a path with a colon (%s); install sdb elsewhere"

    class << self
      # What to put in front of what these variables hold. keep: also name a copy that stays when the gem goes.
      # @return [Hash] { "RUBYLIB" => String, "RUBYOPT" => String }
      #: (?keep: bool, ?env: Hash) -> Hash[String, String] ! UnsupportedError
      def additions(keep: false, env: ENV)
        folders = [FOLDER, (copy(env) if keep)].compact.reject { |folder| folder.include?(File::PATH_SEPARATOR) }
        raise UnsupportedError, format(NOT_POSSIBLE, FOLDER) if folders.empty?

        { "RUBYLIB" => folders.join(File::PATH_SEPARATOR), "RUBYOPT" => OPTION }
      end

      # A folder on the way to ours that others may not enter, or nil: their Rubies would not start with our variables.
      #: () -> String?
      def closed_to_others
        parts = FOLDER.split("/")
        parts.each_index.map { |n| parts[0..n].join("/") }.drop(1).find { |dir| File.stat(dir).mode.nobits?(0o001) }
      end

      # Whether the variables of env have them already.
      #: (?Hash) -> bool
      def there?(env = ENV)
        env["RUBYOPT"].to_s.split.include?(OPTION) && env["RUBYLIB"].to_s.split(File::PATH_SEPARATOR).include?(FOLDER)
      end

      # The values in full, for a child process.
      #: (?Hash) -> Hash[String, String]
      def variables(env = ENV)
        return env.to_h.slice("RUBYLIB", "RUBYOPT") if there?(env)

        { "RUBYLIB" => File::PATH_SEPARATOR, "RUBYOPT" => " " }.to_h do |name, separator|
          [name, [additions.fetch(name), env[name]].reject { |part| part.to_s.empty? }.join(separator)]
        end
      end

      private

      # The copy of sdb_auto.rb in the user's data folder, or nil where there is no such place.
      def copy(env)
        data = env["XDG_DATA_HOME"].to_s
        data = File.join(env["HOME"].to_s, ".local/share") unless data.start_with?("/")
        return unless data.start_with?("/") && File.directory?(env["HOME"].to_s)

        folder = File.join(data, "sdb", "env")
        FileUtils.mkdir_p(folder)
        write(File.join(folder, "sdb_auto.rb"), File.binread(File.join(FOLDER, "sdb_auto.rb")))
        folder
      rescue SystemCallError
        nil
      end

      # In one step: a Ruby may be reading it.
      def write(path, text)
        return if File.file?(path) && File.binread(path) == text

        partial = "#{path}.#{Process.pid}"
        File.binwrite(partial, text)
        File.rename(partial, path)
      end
    end
  end
end
