# frozen_string_literal: true

module Sdb
  # Which program this is. One that only installs, lists or asks is over in a moment and nobody will look for its log: it
  # must not push out those that matter, and `sdb status` must not answer about itself.
  module Program
    TOOLS = %w[bundle bundler erb gem irb racc rbs rdoc ri rubocop sdb].freeze
    BUNDLE_EXEC = /\Ae(?:x(?:ec?)?)?\z/ # Bundler takes each beginning of "exec"
    # Those of rake that print something and run no task.
    RAKE_LISTS = /\A(?:-[TPDWAHhV]|--(?:tasks|prereqs|describe|where|all|help|version))/

    class << self
      # Whether nothing is recorded here by environment alone. `sdb record` records whatever it is given.
      #: (?String, ?Array[String], ?Hash) -> bool
      def tool?(path = $PROGRAM_NAME, arguments = ARGV, env = ENV)
        env["SDB_RECORD"] != "1" && short?(File.basename(path), arguments)
      end

      private

      def short?(name, arguments)
        name = name.delete_suffix(RUBY_SUFFIX)
        return run_by_bundler?(arguments) if %w[bundle bundler].include?(name)
        return lists_or_asks?(arguments) if name == "rake"

        TOOLS.include?(name)
      end

      # `bundle exec puma` becomes puma in this very process, so it is recorded from here on. `bundle exec ruby` is
      # replaced by another program, which loads this file again.
      def run_by_bundler?(arguments)
        command, *rest = arguments.drop_while { |word| word.start_with?("-") }
        return true unless command&.match?(BUNDLE_EXEC)

        program, *words = rest.drop_while { |word| word.start_with?("-") }
        program.nil? || File.basename(program) == "ruby" || short?(File.basename(program), words)
      end

      def lists_or_asks?(arguments)
        tasks = arguments.reject { |word| word.start_with?("-") || word.include?("=") }
        arguments.any? { |word| word.match?(RAKE_LISTS) } || (tasks.any? && tasks.all? { |task| task.start_with?("sdb:") })
      end
    end

    # As Debian names the commands of a Ruby that is not its first: rake3.3
    RUBY_SUFFIX = RUBY_VERSION[/\A\d+\.\d+/]
    private_constant :RUBY_SUFFIX
  end
end
