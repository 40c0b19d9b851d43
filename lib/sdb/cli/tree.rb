# frozen_string_literal: true

require_relative "analysis"

module Sdb
  module CLI
    # The call tree.
    class Tree < Analysis
      summary "the call tree, with the time spent below each function"
      usage "[options] [RING...]"
      examples "sdb tree                       # down to 0.5 % of the time",
               "sdb tree --min 5 --depth 12    # only the largest",
               "sdb tree --focus User --lines"

      # Where a tree branches at each of thousands of levels, what stands before a name would be most of the answer.
      INDENT_MAX = 200
      private_constant :INDENT_MAX

      private

      def own_options(parser)
        parser.on("--min PERCENT", "leave out entries below this share (default: 0.5; with --json: 0)") { |v| @min = share(v) }
        parser.on("--depth N", "show at most N levels") { |v| @depth = whole(v, "--depth") }
        parser.on("--lines", "one entry per line of code instead of per function") { @lines = true }
      end

      def share(text)
        Float(text.delete_suffix("%")).tap { |v| raise ArgumentError unless v.between?(0, 100) }
      rescue ArgumentError
        raise UsageError, "--min #{text}: use a percentage, such as 1"
      end

      def run(arguments)
        with_profile(arguments) do |profile|
          answer = profile.tree(metric: filters.metric, lines: @lines || false, **filters.to_h)
          @min_ns = (answer.total_ns * (@min || (json? ? 0 : 0.5)) / 100).ceil
          json? ? print_document(answer) : show(profile, answer)
        end
        0
      end

      def print_document(answer)
        document = answer.to_h
        prune(document)
        print_json(document)
      end

      # Takes out of the document what --min and --depth leave out.
      def prune(document)
        document[:roots] = document[:roots].select { |node| node[:total_ns] >= @min_ns }
        level = 1
        nodes = document[:roots]
        until nodes.empty?
          cut = @depth && level >= @depth
          nodes.each { |node| node[:children] = cut ? [] : node[:children].select { |child| child[:total_ns] >= @min_ns } }
          nodes = nodes.flat_map { |node| node[:children] }
          level += 1
        end
      end

      def show(profile, answer)
        heading(profile, "#{answer.metric} #{Text.duration(answer.total_ns)}")
        return nothing if answer.total_ns.zero?

        out.puts
        out.puts terminal.paint("   total              self  function", :dim)
        @total = answer.total_ns
        @left_out = 0
        print_nodes(answer.roots, "", 1)
        return if @left_out.zero?

        out.puts terminal.paint("#{terminal.draw(:ellipsis)} #{Text.count(@left_out)} smaller entries left out (--min 0 shows all)",
                                :dim)
      end

      # Indents where the tree branches; an only child stands right under its parent. An explicit stack: recorded
      # recursion may be deeper than Ruby's own.
      def print_nodes(roots, indent, level)
        todo = entries(roots, indent, level, top: true).reverse
        until todo.empty?
          node, prefix, below, depth = todo.pop
          print_node(node, prefix)
          next if @depth && depth >= @depth

          todo.concat(entries(node.children, below, depth + 1).reverse)
        end
      end

      # [node, what stands before its name, what stands before its children's, level]
      def entries(nodes, indent, level, top: false)
        shown = nodes.select { |n| n.total_ns >= @min_ns }
        @left_out += nodes.size - shown.size
        return shown.map { |n| [n, "", "", level] } if top

        indent = "#{terminal.draw(:ellipsis)} #{indent[-(INDENT_MAX / 2)..]}" if indent.length > INDENT_MAX
        return shown.map { |n| [n, indent + terminal.draw(:next), indent, level] } if shown.size == 1

        shown.each_with_index.map do |node, i|
          last = i == shown.size - 1
          blank = " " * terminal.draw(:line).length
          [node, indent + terminal.draw(last ? :last : :branch), indent + (last ? blank : terminal.draw(:line)), level]
        end
      end

      def print_node(node, prefix)
        numbers = format("%8s %6s %10s  ", Text.duration(node.total_ns), Text.percent(node.total_ns, @total),
                         node.self_ns.zero? ? "" : Text.duration(node.self_ns))
        out.puts terminal.fit_place("#{numbers}#{prefix}#{node.name}", place(node.path, node.line))
      end
    end
  end
end
