# frozen_string_literal: true

require_relative "analysis"
require_relative "waterfall"

module Sdb
  module CLI
    # One request, from its begin to its end.
    class Request < Analysis
      summary "what one request or job did over time"
      usage "[options] ID [RING...]"
      examples "sdb request 5f3c9a2e            # calls that took at least 1 % of the time",
               "sdb request 5f3c9a2e --all     # every call",
               "sdb request 5f3c9a2e --runs    # each stretch of time with its state",
               "sdb request 5f3c9a2e --html    # an HTML page with a timeline, request.html"

      private

      def own_options(parser)
        parser.on("--min TIME", "leave out calls shorter than this, such as 1ms (default: 1 % of the request)") { |v| @min_ns = shortest(v) }
        parser.on("--all", "show every call, including those that only led to another") { @all = true }
        parser.on("--depth N", "show at most N levels of calls") { |v| @depth = whole(v, "--depth") }
        parser.on("--runs", "list stretches of time instead of calls") { @runs = true }
        parser.on("--html", "write a stack chart as one HTML file (request.html, or see -o)") { @output ||= "request.html" }
        parser.on("-o", "--output FILE", "write the stack chart to FILE (- for stdout)") { |v| @output = v }
      end

      def shortest(text)
        Units.duration_ns(text)
      rescue ArgumentError
        raise UsageError, "--min #{text}: not a duration; use 500us or 2ms"
      end

      def run(arguments)
        raise UsageError, "ID is missing (`sdb slow` lists them)" if arguments.empty?

        id, *paths = arguments
        ignore(:metric, :state, :focus)
        with_profile(paths) { |profile| answer(profile, profile.request(id, **filters.to_h)) }
        0
      end

      def answer(profile, request)
        if @output
          draw_request(profile, request, @output, nil)
        elsif json?
          print_json(request)
        else
          show(profile, request)
        end
      end

      def show(profile, request)
        ending = if request.open
                   "still open"
                 else
                   (request.status.is_a?(Integer) ? "status #{request.status}" : request.status)
                 end
        heading(profile, request.name, request.id, ending, Text.clock(request.start))
        out.puts terminal.fit("#{request.kind}, pid #{request.pid} thread #{request.tid}#{tags(request.tags)}")
        out.puts
        out.puts sums(profile, request)
        out.puts
        @runs ? list_runs(request) : draw(profile, request)
        show_holders(request)
      end

      def tags(tags)
        tags.to_h.map { |key, value| "  #{key}=#{value}" }.join
      end

      def sums(profile, request)
        states = %w[running gvl_wait blocked gc].map do |state|
          ns = request.public_send(:"#{state}_ns").to_i
          text = state == "gvl_wait" && ns.zero? && inferred?(profile) ? "-" : Text.duration(ns)
          terminal.paint("#{terminal.draw(state.to_sym)} #{state} #{text}", *state_style(state))
        end
        totals = ["wall #{Text.duration(request.wall_ns)}", "cpu #{Text.duration(request.cpu_ns)}",
                  request.allocations && "#{Text.count(request.allocations)} allocations#{" in the process" if inferred?(profile)}"]
        [totals.compact.join("  "), states.join("  ")]
      end

      def draw(profile, request)
        width = terminal.width ? (terminal.width / 4).clamp(12, Waterfall::BAR) : Waterfall::BAR
        waterfall = Waterfall.new(request.runs, request.start_ns, request.wall_ns, width: width)
        calls = waterfall.calls(min_ns: @min_ns || (@all ? 0 : request.wall_ns / 100), depth: @depth)
        kept = @all ? calls.map { |call| [call, 0] } : waterfall.essential(calls, &own_code(profile))
        table = Table.new(terminal, [["at", :right], ["for", :right], ["", :left], ["call", :left]])
        indents = indents(calls)
        kept.each do |call, folded|
          lead = "  " * indents[call]
          table.row Text.duration(waterfall.offset_ns(call)), Text.duration(call.duration_ns),
                    waterfall.bar(call, terminal).rstrip.ljust(width), ["#{lead}#{call.name}", place(call.path, call.line)]
          table.row "", "", " " * width, "#{lead}#{terminal.draw(:ellipsis)} #{Text.plural(folded, "call")} on the way", styles: { 3 => :dim } if folded.positive?
        end
        table.print(out)
        more_note(waterfall.calls(min_ns: 0).size - kept.size, "--all")
      end

      def own_code(profile)
        require_relative "../shared/categories"
        categories = Categories.new(profile.rings.map { |ring| ring.text["app_root"] })
        ->(call) { categories.of(call.name, call.path) == :app }
      end

      # One step deeper where a caller made more than one call.
      def indents(calls)
        siblings = Hash.new(0).compare_by_identity
        calls.each { |call| siblings[call.parent] += 1 }
        calls.each_with_object({}.compare_by_identity) do |call, all|
          all[call] = (call.parent ? all.fetch(call.parent) : 0) + (siblings[call.parent] > 1 ? 1 : 0)
        end
      end

      def list_runs(request)
        table = Table.new(terminal, [["at", :right], ["for", :right], ["state", :left], ["doing", :left]])
        request.runs.each do |run|
          frame = run.frames.last
          holder = run.holder ? "  < #{holder_text(run.holder)}" : ""
          table.row Text.duration(run.at_ns - request.start_ns), Text.duration(run.ns), run.state,
                    "#{frame ? "#{frame.name}  #{place(frame.path, frame.line)}".rstrip : "-"}#{holder}",
                    styles: { 2 => state_style(run.state) }
        end
        table.print(out)
      end

      # Who held the GVL while it waited, most first.
      def show_holders(request)
        rows = holders(request.blame)
        return if rows.empty?

        out.puts
        out.puts terminal.paint("waited for the GVL, held by", :bold)
        rows.first(10).each { |ns, text| out.puts terminal.fit("  #{Text.duration(ns).rjust(8)}  #{text}") }
      end

      def holder_text(holder)
        frame = holder.frames.last
        [holder.span_name, holder.thread && "thread #{holder.thread}",
         frame && "#{frame.name} #{place(frame.path, frame.line)}".rstrip].compact.join(", ")
      end
    end
  end
end
