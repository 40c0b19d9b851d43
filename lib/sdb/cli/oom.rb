# frozen_string_literal: true

require "tempfile"
require_relative "command"
require_relative "unprivileged"
require_relative "../shared/opened"

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
        when "list" then nil
        when "show" then take(places, 1..1, "DUMP")
        when nil then raise UsageError, "list or show is missing"
        else raise UsageError, "#{action}: neither list nor show.#{Nearest.hint(action, %w[list show])}"
        end
        gather(places)
        status = Unprivileged.needed? ? run_unprivileged(action, places) : answer(action, places)
        save if @output && status.zero?
        status
      ensure
        @page&.close
      end

      def answer(action, places) = action == "list" ? list(places) : show(places.first)

      # As root: opens all there is, and leaves the reading to a child.
      def run_unprivileged(action, places)
        load_all
        Unprivileged.raise_limit
        @given.each { |place, paths| paths.each { |path| Opened.add(path, given: path == place) } }
        @default.each { |path| Opened.add(path, given: false) }
        Unprivileged.run(@out, @err) do |out, err|
          @out = out
          @err = err
          answer(action, places)
        end
      ensure
        Opened.clear
      end

      # The child may not be able to read our own files.
      def load_all
        require_relative "../oom/death"
        require_relative "oom_text"
        Sdb.const_get(:Native).reader_missing
        return unless @output

        require_relative "../report/oom_page"
        Report::Page.load_assets
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
        write_page(death) if @output
        return print_json(death.report) || 0 if json?

        require_relative "oom_text"
        OomText.new(terminal, out, depth: @depth || 20).print(death)
        out.puts "", "#{@output}" if @output
        0
      end

      # --- finding them ---------------------------------------------------------------------------------

      # What the places hold, by name alone. Default: only where it is asked for.
      def gather(places)
        @given = places.reject { |place| place == "latest" }.to_h { |place| [place, in_place(place)] }
        @default = @given.values.all?(&:empty?) ? default_paths : []
        @page = Tempfile.create("sdb").tap { |file| File.unlink(file.path) } if @output
      end

      def pick(place)
        return newest(place) if place == "latest"

        found = @given[place] == [place] ? [death_of(place)] : find([place])
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
        paths = places.empty? ? dead_of(@default) : places.flat_map { |place| dead_of(@given.fetch(place), place) }
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
        return Dir.glob("#{glob_escape(place)}/*.{sdbdump,sdb}") if File.directory?(place)
        return [place] if File.exist?(place)

        place.match?(/\A\d+\z/) ? [] : raise(NoRingError, "no such file or directory: #{place}")
      end

      def default_paths
        require_relative "../log_set"
        in_place(ENV.fetch("SDB_DUMPS", DUMPS)) + LogSet.default_logs.select { |path| dead?(path) }
      end

      # Without the logs of processes that live; a file that was named is meant.
      def dead_of(paths, place = nil) = paths.select { |path| path == place || dead?(path) }

      def dead?(path)
        path.end_with?(".sdbdump") || Ring.read(path).state == "dead"
      rescue FormatError, SystemCallError
        false
      end

      def glob_escape(path) = path.gsub(/[\[\]{}*?\\]/) { |c| "\\#{c}" }

      def nothing_found
        "no dump in #{ENV.fetch("SDB_DUMPS", DUMPS)}, and no log of a process that vanished; dumps are made by sdb-oomd (see bpf/README.md)"
      end

      def write_page(death)
        require_relative "../report/oom_page"
        Report::OomPage.write(death, @page)
        @page.flush
      end

      def save
        @page.rewind
        File.open(@output, "w") { |file| IO.copy_stream(@page, file) }
      end
    end
  end
end
