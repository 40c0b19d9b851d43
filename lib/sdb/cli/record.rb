# frozen_string_literal: true

require "fileutils"
require "shellwords"
require_relative "../config"
require_relative "../environment"
require_relative "../log_place"
require_relative "command"
require_relative "child"

module Sdb
  module CLI
    # Runs a command with the recorder in it and in its children.
    class Record < Command
      summary "profile a command and its child processes, then show where the time went"
      usage "[options] [--] COMMAND [ARGUMENT...]"
      examples "sdb record -- ruby script.rb",
               "sdb record -o slow.sdb -- bundle exec rake test  # keep the log as slow.sdb",
               "sdb record --interval 100us -- ruby script.rb    # ten times finer"
      details <<~TEXT.chomp
        The command's output, input and signals pass through; sdb itself writes to stderr only.
        Exit status: that of the command; 126 or 127 if it cannot be run, 128 + N if signal N ended it.
      TEXT

      TOP = 10

      private

      def permute? = false

      def define(parser)
        parser.on("-o", "--output FILE", "save the log as FILE (child processes: FILE with their pid added)") { |v| @output = v }
        parser.on("--dir DIR", "write logs to DIR (default: a new directory for each run)") { |v| @dir = v }
        parser.on("--interval TIME", "time between two samples (default: 1ms)") { |v| env("SDB_INTERVAL", v) }
        parser.on("--ring SIZE", "size of each process's log (default: 64M)") { |v| env("SDB_RING", v) }
        parser.on("--max-cpu SHARE", "CPU budget of the recorder, as a share of one core (default: 0.05)") { |v| env("SDB_MAX_CPU", v) }
        parser.on("--service NAME", "name of the process in the log") { |v| env("SDB_SERVICE", v) }
      end

      # Checked here, where the user can still see it.
      def env(name, value)
        problem = Config.resolve(env: { name => value }).warnings.first
        raise UsageError, problem.split("; using ").first if problem

        (@env ||= {})[name] = value
      end

      def run(arguments)
        raise UsageError, "COMMAND is missing" if arguments.empty?

        dir = @dir ? named_dir : new_dir
        before = logs(dir)
        status = start(arguments, dir) or return @cannot
        logs = keep(logs(dir) - before, dir)
        prune(except: dir) unless @dir
        json? ? print_document(status, logs) : report(status, logs, dir)
        status
      end

      # As shells have it: 127 not found, 126 not executable.
      def start(command, dir)
        Child.run(command, environment(dir))
      rescue SystemCallError => e
        Dir.rmdir(dir) unless @dir
        warn("cannot run #{command.first}: #{e.class.new.message}")
        @cannot = e.is_a?(Errno::ENOENT) ? 127 : 126
        nil
      end

      # A directory of its own, so that what is found there is this run's; in the folder that is surely this user's.
      def new_dir
        base = LogPlace.make_user_dir
        warn("#{Config.user_dir} is another user's; using #{base}") unless File.basename(base) == File.basename(Config.user_dir)
        dir = File.join(base, "record-#{Time.now.strftime("%Y%m%d-%H%M%S")}-#{Process.pid}")
        Dir.mkdir(dir, 0o700)
        prune(except: dir)
        dir
      end

      # Where others may write, too, the logs lie in a subfolder.
      def named_dir = LogPlace.make_named_dir(File.expand_path(@dir))

      # Of earlier runs the newest stay, as many logs as SDB_KEEP says. One that is still going on stays whole.
      def prune(except:)
        keep = Config.resolve.keep - logs(except).size
        runs = Dir.glob("record-*/", base: File.dirname(except)).sort.reverse.map { |run| File.join(File.dirname(except), run.chomp("/")) }
        runs.each do |run|
          next if run == except || File.symlink?(run) || !File.stat(run).owned?

          paths = logs(run)
          keep -= paths.size
          remove_run(run, paths) if keep.negative? && paths.any? && paths.none? { |path| alive?(path) }
        end
      rescue SystemCallError
        nil # another run removes them
      end

      def remove_run(run, paths)
        File.unlink(*paths)
        Dir.rmdir(run) if Dir.empty?(run)
      end

      def alive?(path)
        require_relative "../ring"
        Ring.read(path).alive?
      rescue FormatError
        false
      end

      # SDB_RECORD: whatever the command is, it is meant.
      def environment(dir)
        Environment.variables.merge("SDB" => "1", "SDB_DIR" => dir, "SDB_RECORD" => "1").merge(@env || {})
      end

      def logs(dir)
        Dir.children(dir).select { |name| name.end_with?(".sdb") }.sort.map { |name| File.join(dir, name) }
      rescue Errno::ENOENT
        []
      end

      # Where the logs are in the end, the command's own first.
      def keep(paths, dir)
        paths = paths.sort_by { |path| [path[%r{/(\d+)-[^/]+\z}, 1].to_i == Child.last_pid ? 0 : 1, path] }
        return paths unless @output

        kept = paths.each_with_index.map do |path, n|
          target = n.zero? ? @output : child_name(path)
          FileUtils.mkdir_p(File.dirname(target))
          FileUtils.mv(path, target)
          target
        end
        Dir.rmdir(dir) unless @dir || !Dir.empty?(dir)
        kept
      end

      # slow.sdb -> slow.4243.sdb
      def child_name(path)
        extension = File.extname(@output)
        "#{@output.delete_suffix(extension)}.#{File.basename(path)[/\A\d+/]}#{extension}"
      end

      def print_document(status, logs)
        require_relative "../ring"
        print_json({ schema: 1, status: status, rings: logs.map { |path| Ring.read(path).entry.to_h } })
      end

      def report(status, logs, dir)
        if logs.empty?
          Dir.rmdir(dir) unless @dir
          warn("no log was written. Is the command a Ruby program? `sdb doctor` shows what is missing")
          return
        end
        warn("the command ended with status #{status}") unless status.zero?
        err.puts
        warn(logs.size == 1 ? "log: #{logs.first}" : "#{logs.size} logs, one per process, in #{File.dirname(logs.first)}")
        top(logs)
      rescue Error, SystemCallError => e
        warn("cannot show a summary: #{e.message}")
      end

      def top(logs)
        require_relative "../log_set"
        require_relative "functions"
        Functions.new(out: err, err: err).brief(logs, TOP)
        where = place(logs)
        err.puts
        err.puts "More:"
        %w[functions flamegraph tree threads slow].each { |command| err.puts "  sdb #{command} #{where}" }
      end

      # What to type for these logs.
      def place(logs)
        return Shellwords.escape(File.dirname(logs.first)) unless @output || logs.size == 1
        return "latest" if !@output && LogSet.resolve(["latest"]).paths == logs

        logs.map { |path| Shellwords.escape(path) }.join(" ")
      rescue NoRingError
        Shellwords.escape(logs.first)
      end
    end
  end
end
