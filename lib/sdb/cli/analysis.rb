# frozen_string_literal: true

require "stringio"
require_relative "command"
require_relative "filters"
require_relative "losses"
require_relative "progress"
require_relative "../shared/paths"

module Sdb
  module CLI
    # Base of the commands that ask a profile: `sdb NAME [options] [RING...]` with all filters.
    class Analysis < Command
      LOGS = <<~TEXT
        RING is a log file, a dump, a directory of either, the pid of a process, or "latest". By default: --pid,
        else $SDB_DIR, else ./tmp/sdb, else your own directory under the temp dir. Several processes are merged;
        `sdb ls` lists them.
      TEXT

      def self.details(text = nil)
        text ? super : [super(), LOGS].compact.join("\n")
      end

      def initialize(out:, err:)
        super
        @filters = Filters.new
      end

      private

      attr_reader :filters

      # Subclasses define their own options here.
      def own_options(_parser); end

      def define(parser)
        own_options(parser)
        filters.define(parser)
      end

      # Yields the profile of the logs meant, and says on err what is wrong with them.
      def with_profile(paths, window: nil)
        require_relative "../open"
        profile = Progress.new(err).during("reading the log") do
          Sdb.open(*paths, pid: filters.pid, window: window).tap(&:rings)
        end
        profile.warnings.each { |line| warn(line) }
        @paths = Paths.of(profile.rings)
        yield profile
      end

      # Says so when filters that every command takes mean nothing to this one.
      def ignore(*names)
        given = names.select { |name| filters.given?(name) }
        return if given.empty?

        flags = given.map { |name| "--#{name.to_s.tr("_", "-")}" }
        warn("#{flags.join(" and ")} #{flags.size == 1 ? "has" : "have"} no effect here")
      end

      # The answer as one file, `path` or stdout for "-": what is in it is written by the block.
      def save_page(path)
        raise UsageError, "--json and -o - both write to stdout; choose one" if json? && path == "-"

        page = StringIO.new(String.new(encoding: Encoding::UTF_8))
        Progress.new(err).during("drawing") { yield page }
        return out.raw(page.string) if path == "-"

        File.write(path, page.string)
        json? ? print_json({ schema: 1, path: File.expand_path(path), bytes: page.string.bytesize }) : out.puts(path)
      end

      # The stack chart of one request.
      def draw_request(profile, request, path, title)
        require_relative "../report/stack_chart"
        title ||= [request.name, request.id].reject(&:empty?).join(" ")
        roots = profile.rings.filter_map { |ring| ring.text["app_root"] }.uniq
        save_page(path) { |page| Report::StackChart.render(request, page, title: title, roots: roots) }
      end

      # A heading for text answers: "wall 54.0 s   6 threads   54,000 samples   of shop, pid 4242", and which part of the
      # logs it is about.
      def heading(profile, *parts)
        out.puts terminal.paint(terminal.fit([*parts.compact, whose(profile)].join("   ")), :bold)
        part = filters.words
        out.puts terminal.fit("only: #{part.join("   ")}") unless part.empty?
        lost = Losses.words(profile.lost)
        out.puts terminal.paint(terminal.fit("lost: #{lost}"), Losses.doubtful?(profile) ? :yellow : :dim) if lost
      end

      def whose(profile)
        rings = profile.rings
        return "of #{rings.size} logs" if rings.size > 1

        ring = rings.first
        "of #{Text.program(ring)}, pid #{ring.pid}#{" (#{ring.state})" if ring.state == "dead"}"
      end

      def nothing
        out.puts terminal.paint("nothing recorded matches the filters", :dim)
      end

      # On Ruby 3.1 nobody knows who waited for the GVL.
      def inferred?(profile) = profile.thread_infos.any? { |thread| thread.states == "inferred" }

      # Who held the GVL, most first: [ns, "UsersController#index, thread x: 12 ms in Foo#bar  /app/foo.rb:3"]
      def holders(blames)
        rows = Array(blames).group_by { |blame| [blame.span_name, blame.thread] }.map do |(span, thread), list|
          who = [span, thread && "thread #{thread}"].compact.join(", ")
          total = list.sum(&:ns)
          [total, "#{who.empty? ? "an unknown thread" : who}#{mostly(list.max_by(&:ns), total)}"]
        end
        rows.sort_by { |ns, _| -ns }
      end

      def mostly(blame, total)
        frame = blame.frames.last or return ""
        share = ": #{Text.duration(blame.ns)}" if blame.ns < total
        "#{share} in #{place_cell(frame).reject(&:empty?).join("  ")}"
      end

      # A function as the last cell of a row: what is too long loses the begin of its path first.
      def place_cell(function)
        [function.name, place(function.path, function.line)]
      end

      # "app/models/user.rb:12"
      def place(path, line)
        Text.place(@paths.short(path), line)
      end

      def limit_option(parser, what, default)
        parser.on("--limit N", "at most N #{what} (default: #{default}; 0 for all)") { |v| @limit = whole(v, "--limit") }
      end

      def whole(text, flag)
        number = Integer(text, 10)
        raise ArgumentError if number.negative?

        number
      rescue ArgumentError
        raise UsageError, "#{flag} #{text}: not a whole number"
      end

      # How many rows: as asked, else a screenful on a terminal and all elsewhere.
      def limit_for(total, screenful)
        limit = @limit || (terminal.tty? && !json? ? screenful : 0)
        limit.zero? ? total : [limit, total].min
      end

      def more_note(left, flag = "--limit 0")
        return if left <= 0

        out.puts terminal.paint("#{terminal.draw(:ellipsis)} #{Text.count(left)} more (#{flag} shows all)", :dim)
      end

      # Paint by what state it is.
      def state_style(state)
        { "running" => :green, "gvl_wait" => :red, "blocked" => :blue, "gc" => :magenta }[state.to_s]
      end
    end
  end
end
