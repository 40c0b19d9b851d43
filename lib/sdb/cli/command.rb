# frozen_string_literal: true

require "optparse"
require_relative "../errors"
require_relative "../shared/json_text"
require_relative "../shared/text"
require_relative "nearest"
require_relative "output"
require_relative "table"
require_relative "terminal"

module Sdb
  module CLI
    # Base of all commands. A command says what it is (summary, usage, examples), defines its options, and
    # answers in #run with an exit status. The answer goes to `out`, everything else to `err`.
    class Command
      class << self
        # One line for the list of commands.
        def summary(text = nil) = text ? @summary = text : @summary

        # What follows "sdb NAME" in the usage line.
        def usage(text = nil) = text ? @usage = text : @usage

        # Lines "command  # what for", most used first.
        def examples(*lines) = lines.empty? ? (@examples || []) : @examples = lines

        # More about it, after the options.
        def details(text = nil) = text ? @details = text : @details

        # "Functions" -> "functions"
        def command_name = name.split("::").last.downcase

        # @return [Integer] 0 answered, 1 could not, 2 wrong usage
        #: (Array[String], out: IO, err: IO) -> Integer
        def call(argv, out:, err:)
          new(out: out, err: err).call(argv)
        end
      end

      def initialize(out:, err:)
        @out = Output.wrap(out)
        @err = Output.wrap(err)
        @terminal = Terminal.new(@out)
        @json = false
      end

      #: (Array[String]) -> Integer
      def call(argv)
        arguments = parse(argv.dup)
        return show_help if arguments == :help

        run(arguments)
      rescue UsageError => e
        complain(e, "`sdb help #{self.class.command_name}` shows how to use it.")
        2
      rescue Error => e
        complain(e)
        1
      rescue Errno::EPIPE
        raise
      rescue SystemCallError, IOError => e
        complain(e)
        1
      rescue StandardError, SystemStackError, NoMemoryError => e
        # a fault of ours, most likely met in a log that is not as logs are
        raise if ENV["SDB_DEBUG"]

        complain(Error.new("#{e.class}: #{e.message.lines.first.to_s.chomp} (a fault of sdb; SDB_DEBUG=1 shows where)"))
        1
      end

      # Every flag with its short form, for tests and completion.
      #: () -> Array[String]
      def flags
        parser.top.list.select { |o| o.respond_to?(:long) }.flat_map { |o| o.short + o.long }
      end

      private

      attr_reader :out, :err, :terminal

      def json? = @json

      # --- for subclasses -------------------------------------------------------------------------------

      def define(_parser); end

      def run(_arguments)
        raise NotImplementedError
      end

      # Takes exactly so many arguments, else UsageError.
      def take(arguments, range, what)
        return arguments if range.cover?(arguments.size)

        raise UsageError, arguments.size < range.begin ? "#{what} is missing" : "too many arguments: #{arguments.join(" ")}"
      end

      # document: Hash or Value
      def print_json(document)
        JsonText.new(RawSink.new(out)).write(document)
        out.raw "\n"
      end

      RawSink = Struct.new(:out) do
        def <<(text) = out.raw(text)
      end
      private_constant :RawSink

      def warn(text)
        err.puts "sdb #{self.class.command_name}: #{text}"
      end

      # --------------------------------------------------------------------------------------------------

      def parser
        @parser ||= OptionParser.new do |o|
          o.banner = banner
          o.separator ""
          define(o)
          o.on("--json", "print the answer as JSON (#{json_note})") { @json = true }
          o.on("-h", "--help", "show this") { throw :help, :help }
        end
      end

      def json_note = "one document"

      def parse(argv)
        catch(:help) { permute? ? parser.permute(argv) : parser.order(argv) }
      rescue OptionParser::InvalidOption, OptionParser::AmbiguousOption => e
        flag = e.args.first.to_s[/\A[^=]+/]
        raise UsageError, "there is no option #{flag}.#{Nearest.hint(flag, flags.select { |f| f.start_with?("--") })}"
      rescue OptionParser::MissingArgument => e
        raise UsageError, "#{e.args.first} needs a value"
      rescue OptionParser::ParseError => e
        raise UsageError, e.message
      end

      # Whether options may follow arguments.
      def permute? = true

      def show_help
        out.puts self.class.summary.sub(/\A./, &:upcase) + "."
        out.puts
        out.text parser.help
        if self.class.details
          out.puts
          out.text self.class.details
        end
        0
      end

      def banner
        lines = ["Usage: sdb #{self.class.command_name} #{self.class.usage}".rstrip]
        return lines.first if self.class.examples.empty?

        pairs = self.class.examples.map { |line| line.split(/\s+# /, 2) }
        width = pairs.map { |command, _| command.length }.max
        lines << "" << "Examples:"
        lines.concat(pairs.map { |command, what| "  #{command.ljust(width)}  #{what}".rstrip })
        lines << "" << "Options:"
        lines.join("\n")
      end

      def complain(error, more = nil)
        # "No such file or directory @ rb_sysopen - x.html" -> "x.html: No such file or directory"
        message = error.message.dup.force_encoding(Encoding::UTF_8).scrub.sub(/\A(.*?) @ \w+ - (.*)\z/m, '\2: \1')
        err.puts "sdb #{self.class.command_name}: #{message}"
        err.puts more if more
      end
    end
  end
end
