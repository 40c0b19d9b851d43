# frozen_string_literal: true

require_relative "errors"
require_relative "version"
require_relative "cli/nearest"
require_relative "cli/output"

module Sdb
  # `sdb COMMAND`: finds the command's class and gives it the arguments.
  #
  # A new command is a class under CLI in its own file cli/<name>.rb and a line in COMMANDS; nothing of a command is
  # loaded before it is used.
  module CLI
    Entry = Struct.new(:name, :const, :group)

    # In the order people need them.
    COMMANDS = [
      Entry.new("record", :Record, "Record"),
      Entry.new("env", :Env, "Record"),
      Entry.new("ls", :Ls, "Record"),
      Entry.new("status", :Status, "Record"),
      Entry.new("dump", :Dump, "Record"),
      Entry.new("doctor", :Doctor, "Record"),
      Entry.new("slow", :Slow, "Why was it slow"),
      Entry.new("request", :Request, "Why was it slow"),
      Entry.new("functions", :Functions, "Where did the time go"),
      Entry.new("flamegraph", :Flamegraph, "Where did the time go"),
      Entry.new("report", :Report, "Where did the time go"),
      Entry.new("tree", :Tree, "Where did the time go"),
      Entry.new("lines", :Lines, "Where did the time go"),
      Entry.new("callers", :Callers, "Where did the time go"),
      Entry.new("threads", :Threads, "Where did the time go"),
      Entry.new("top", :Top, "What is it doing now"),
      Entry.new("stacks", :Stacks, "What is it doing now"),
      Entry.new("export", :Export, "For other tools"),
      Entry.new("oom", :Oom, "After a sudden death")
    ].freeze

    EXAMPLES = [
      ["sdb record -- ruby script.rb", "profile a command, then show where its time went"],
      ["SDB=1 bundle exec puma", "an app with gem \"sdb\" in its Gemfile, profiled continuously"],
      ["eval \"$(sdb env)\"", "record every Ruby started from this shell, in any bundle"],
      ["sdb slow", "the slowest requests and jobs, and what held them up"],
      ["sdb request ID", "one of them, millisecond by millisecond"],
      ["sdb functions --last 10m", "which functions took the time"],
      ["sdb flamegraph -o out.html", "the same as a picture"],
      ["sdb stacks PID", "what every thread is doing right now"]
    ].freeze

    class << self
      # What exe/sdb does: as run, on the real streams, which are flushed here so that a reader who left does not
      # show as an error at exit.
      #: (Array[String]) -> Integer
      def main(argv)
        status = run(argv)
        $stdout.flush
        status
      rescue Errno::EPIPE
        # Whoever read the answer has seen enough (`| head`).
        discard($stdout)
        0
      end

      # @return [Integer] exit status: 0 answered, 1 could not, 2 wrong usage
      #: (Array[String], ?out: IO, ?err: IO) -> Integer
      def run(argv, out: $stdout, err: $stderr)
        out = Output.wrap(out)
        err = Output.wrap(err)
        name, *rest = argv
        case name
        when nil, "--help", "-h" then overview(out)
        when "help" then help(rest, out, err)
        when "--version", "-v", "version" then version(out)
        else dispatch(name, rest, out, err)
        end
      rescue Interrupt
        130
      end

      # Those whose file is there.
      #: () -> Array[Entry]
      def commands
        COMMANDS.select { |entry| File.file?(file_of(entry)) }
      end

      #: (String) -> Class?
      def command(name)
        entry = commands.find { |e| e.name == name } or return
        require file_of(entry)
        const_get(entry.const, false)
      end

      private

      # What is still in its buffer would show as an error at exit. reopen flushes first, and drops what fails.
      def discard(stream)
        stream.reopen(File::NULL)
      rescue Errno::EPIPE
        nil
      end

      def file_of(entry) = File.join(__dir__, "cli", "#{entry.name}.rb")

      def dispatch(name, rest, out, err)
        command = command(name) or return unknown(name, err)
        command.call(rest, out: out, err: err)
      end

      def help(names, out, err)
        return overview(out) if names.empty?

        command = command(names.first) or return unknown(names.first, err)
        command.call([*names.drop(1), "--help"], out: out, err: err)
      end

      def unknown(name, err)
        kind = name.start_with?("-") ? "option" : "command"
        err.puts "sdb: there is no #{kind} #{name}.#{Nearest.hint(name, commands.map(&:name))}"
        err.puts "`sdb --help` lists all commands."
        2
      end

      def version(out)
        out.puts "sdb #{VERSION}"
        0
      end

      def overview(out)
        out.puts "sdb #{VERSION} - an always-on profiler for Ruby: see what took the time, even after the fact."
        out.puts
        width = EXAMPLES.map { |command, _| command.length }.max
        EXAMPLES.each { |command, what| out.puts "  #{command.ljust(width)}  #{what}" }
        commands.group_by(&:group).each do |group, entries|
          out.puts
          out.puts "#{group}:"
          entries.each { |entry| out.puts "  #{entry.name.ljust(11)}  #{command(entry.name).summary}" }
        end
        out.puts
        out.puts "`sdb help COMMAND` shows examples and options. Every command takes --json."
        0
      end
    end
  end
end
