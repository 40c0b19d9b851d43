# frozen_string_literal: true

require_relative "../environment"
require_relative "../native"
require_relative "command"

module Sdb
  module CLI
    # Prints what makes each Ruby record itself.
    class Env < Command
      summary "variables that make each Ruby record itself, in any bundle"
      usage "[--dockerfile | --fish]"
      examples 'eval "$(sdb env)"              # all Rubies that this shell starts, until it ends',
               "sdb env --dockerfile           # the same as two lines for a Dockerfile",
               "sdb env --fish | source        # for the fish shell"
      details <<~TEXT.chomp
        The app stays as it is: no gem is activated, so its bundle need not have sdb, and Rubies for which sdb is not built
        ignore the variables. Short tools (bundle install, gem, rake -T, sdb itself) are not recorded. SDB=0 switches it off.
        RUBYLIB names a folder of this gem, and behind it a copy in ~/.local/share/sdb that stays when the gem is removed or
        upgraded. A Dockerfile names only the gem's: print the lines again when its version changes.
      TEXT

      private

      def define(parser)
        parser.on("--dockerfile", "two ENV lines") { @form = :dockerfile }
        parser.on("--fish", "for the fish shell") { @form = :fish }
      end

      def run(arguments)
        raise UsageError, "what is #{arguments.first}?" unless arguments.empty?

        missing = Native.recorder_missing
        warn("this Ruby will not be recorded: #{missing}") if missing
        closed = Environment.closed_to_others if Process.euid.zero? # who may start programs of others
        warn("others may not enter #{closed}: no Ruby of another user will start with these variables") if closed
        additions = Environment.additions(keep: @form != :dockerfile)
        return json(additions) if json?

        additions.each { |name, value| out.puts line(name, value, name == "RUBYLIB" ? ":" : " ") }
        0
      end

      def json(additions)
        print_json({ schema: 1, variables: additions })
        0
      end

      # What the variable holds already stays behind ours; what is there already is not added twice.
      def line(name, value, separator)
        there = Environment.there? && @form != :dockerfile
        case @form
        when :dockerfile then %(ENV #{name}="#{value.gsub(/["\\$]/) { "\\#{_1}" }}${#{name}:+#{separator}$#{name}}")
        when :fish then there ? "set -gx #{name} $#{name}" : "set -gx #{name} (string join -n '#{separator}' #{quote(value)} \"$#{name}\")"
        else there ? "export #{name}" : "export #{name}=#{quote(value)}\"${#{name}:+#{separator}$#{name}}\""
        end
      end

      def quote(text) = "'#{text.gsub("'") { "'\\''" }}'"
    end
  end
end
