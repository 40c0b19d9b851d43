# frozen_string_literal: true

require_relative "command"

module Sdb
  module CLI
    # What a process was doing when it was killed.
    class Oom < Command
      DUMPS = "/var/lib/sdb/dumps"

      summary "what a process was doing when it was killed"
      usage "list [DUMP | DIR...] | show DUMP | RING | PID"
      examples "sdb oom list                      # dumps by sdb-oomd, and logs of processes that vanished",
               "sdb oom show latest               # how it died, its memory, requests and threads",
               "sdb oom show x.sdbdump -o x.html  # the last ten seconds as a flame graph"
      details <<~TEXT.chomp
        By default, looks in $SDB_DUMPS, else #{DUMPS}, and wherever the other commands look.
        The other commands read dumps as well: sdb slow x.sdbdump.
      TEXT

      private

      def define(parser)
        parser.on("-o", "--output FILE", "show: also write an HTML page") { |v| @output = v }
        parser.on("--depth N", Integer, "show: only the newest N frames of each thread (default: 20)") { |v| @depth = v }
      end

      def run(arguments)
        action, *places = arguments
        case action
        when "list" then list(places)
        when "show" then show(take(places, 1..1, "DUMP").first)
        when nil then raise UsageError, "list or show is missing"
        else raise UsageError, "#{action}: neither list nor show.#{Nearest.hint(action, %w[list show])}"
        end
      end

      def list(places)
        deaths = find(places).sort_by(&:at)
        return print_json({ schema: 1, dumps: deaths.map { |death| death.entry.to_h } }) || 0 if json?
        raise NoRingError, nothing_found if deaths.empty?

        table = Table.new(terminal, [["died", :left], ["cause", :left], ["service", :left], ["pid", :right], ["complete", :left],
                                     ["file", :left]])
        deaths.each do |death|
          row = death.entry
          table.row Text.clock(row.at), row.cause, row.service.to_s, row.pid,
                    if death.dump
                      row.complete ? "yes" : "no"
                    else
                      "log only"
                    end, row.path,
                    styles: { 1 => row.cause == "oom" ? :red : :yellow }
        end
        table.print(out)
        0
      end

      def show(place)
        death = pick(place)
        death.warnings.each { |line| warn(line) }
        save(death) if @output
        return print_json(death.report) || 0 if json?

        require_relative "oom_text"
        OomText.new(terminal, out, depth: @depth || 20).print(death)
        out.puts "", "#{@output}" if @output
        0
      end

      # --- finding them ---------------------------------------------------------------------------------

      def pick(place)
        return newest(place) if place == "latest"

        found = File.exist?(place) && !File.directory?(place) ? [death_of(place)] : find([place])
        found = of_process(place.to_i) if found.empty? && place.match?(/\A\d+\z/)
        found.max_by(&:at) or raise NoRingError, "no dump and no log of a dead process: #{place}"
      end

      def newest(_place)
        find([]).max_by(&:at) or raise NoRingError, nothing_found
      end

      def of_process(pid)
        find([]).select { |death| death.pid == pid || death.dump&.number(:pid) == pid }
      end

      # Dumps in the places given, or in the default ones together with rings of processes that vanished.
      def find(places)
        require_relative "../oom/death"
        paths = places.empty? ? default_paths : places.flat_map { |place| in_place(place) }
        one_of_each(paths.uniq.filter_map { |path| death_of(path, quiet: true) })
      end

      # A dump has the ring of the same process in it.
      def one_of_each(deaths)
        dumped = deaths.select(&:dump).filter_map { |death| death.ring && life_of(death.ring) }
        deaths.reject { |death| death.dump.nil? && dumped.include?(life_of(death.ring)) }
      end

      def life_of(ring) = [ring.pid, ring.boot_id, ring.start_monotonic_ns]

      def death_of(path, quiet: false)
        require_relative "../oom/death"
        Sdb::Oom::Death.read(path)
      rescue FormatError, SystemCallError => e
        raise unless quiet

        warn(e.message)
        nil
      end

      def in_place(place)
        return Dir.glob("#{glob_escape(place)}/*.{sdbdump,sdb}").select { |path| dead?(path) } if File.directory?(place)
        return [place] if File.exist?(place)

        place.match?(/\A\d+\z/) ? [] : raise(NoRingError, "no such file or directory: #{place}")
      end

      def default_paths
        require_relative "../log_set"
        in_place(ENV.fetch("SDB_DUMPS", DUMPS)) + LogSet.default_logs.select { |path| dead?(path) }
      end

      def dead?(path)
        path.end_with?(".sdbdump") || Ring.read(path).state == "dead"
      rescue FormatError, SystemCallError
        false
      end

      def glob_escape(path) = path.gsub(/[\[\]{}*?\\]/) { |c| "\\#{c}" }

      def nothing_found
        "no dump in #{ENV.fetch("SDB_DUMPS", DUMPS)}, and no log of a process that vanished; dumps are made by sdb-oomd (see bpf/README.md)"
      end

      def save(death)
        require_relative "../report/oom_page"
        File.open(@output, "w") { |file| Report::OomPage.write(death, file) }
      end
    end
  end
end
