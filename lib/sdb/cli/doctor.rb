# frozen_string_literal: true

require_relative "command"
require_relative "progress"

module Sdb
  module CLI
    # Can Ruby programs be profiled here, and what is missing.
    #
    # Prints what Sdb.doctor says: {ok:, checks: [{name:, ok:, detail:, fix:}], layout: [{field:, table:, measured:,
    # compared:}]}; ok: nil means neither good nor bad. Other keys are shown as facts.
    class Doctor < Command
      summary "check whether this Ruby can be profiled on this host, and how to fix what is missing"
      usage "[options]"
      examples "sdb doctor              # takes a second: it measures what sampling costs here",
               "sdb doctor --quick      # without that measurement",
               "bundle exec sdb doctor  # with the app's own Ruby and gems"
      details "Checks the Ruby that runs it. Exit status: 0 if programs can be profiled with it, 1 if not."

      private

      def define(parser)
        parser.on("--quick", "do not measure the cost of sampling") { @quick = true }
      end

      def run(arguments)
        take(arguments, 0..0, "nothing")
        facts = examine
        json? ? print_json({ schema: 1 }.merge(facts)) : show(facts)
        facts[:ok] ? 0 : 1
      end

      def examine
        require_relative "../doctor"
        Progress.new(err).during("measuring what sampling costs here") { Sdb.doctor(measure: !@quick).to_h }
      rescue LoadError => e
        raise UnsupportedError, "the recorder is not installed for this Ruby (#{e.message}); " \
                                "reinstall the gem on a machine with a C compiler: gem install sdb"
      end

      def show(facts)
        facts.each do |name, value|
          out.puts "#{name.to_s.ljust(10)} #{value}" unless %i[ok checks layout].include?(name)
        end
        Array(facts[:checks]).each { |check| show_check(check) }
        show_layout(facts[:layout]) if facts[:layout] && !facts[:layout].empty?
        out.puts
        out.puts(facts[:ok] ? terminal.paint("Ruby programs can be profiled here.",
                                             :green) : terminal.paint("Ruby programs cannot be profiled here; see above.", :red))
      end

      def show_check(check)
        mark, style = { true => ["ok", :green], false => ["NO", :red], nil => ["--", :yellow] }.fetch(check[:ok])
        out.puts "#{terminal.paint(mark, style)}  #{check[:name]}: #{check[:detail]}"
        out.puts "      #{terminal.paint("fix:", :bold)} #{check[:fix]}" if check[:fix]
      end

      # Where this Ruby keeps what the scanner reads: known for the version, and measured in this process.
      def show_layout(rows)
        out.puts
        table = Table.new(terminal, [["table", :right], ["measured", :right], ["", :left], ["layout", :left]])
        rows.each do |row|
          agree = row[:table] == row[:measured]
          verdict = if row[:compared]
                      agree ? "agree" : "DIFFER"
                    else
                      "not measured"
                    end
          table.row row[:table], row[:compared] ? row[:measured] : "-", verdict, row[:field],
                    styles: { 2 => (row[:compared] && !agree ? :red : :dim) }
        end
        table.print(out)
      end
    end
  end
end
