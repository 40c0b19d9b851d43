# frozen_string_literal: true

require "cgi/escape"
require "stringio"
require_relative "../oom/sentences"
require_relative "../shared/paths"
require_relative "../shared/text"
require_relative "flamegraph"

module Sdb
  module Report
    # `sdb oom show -o`: one HTML file with how it died and what it was doing, and the last ten seconds as a flame
    # graph. The words are plain HTML above the graph: readable without scripts.
    module OomPage
      LAST_NS = 10_000_000_000
      MARK = "<main id=\"main\">\n"
      DEPTH = 60
      STYLES = [*FlameGraph::STYLES, "oom.css"].freeze

      module_function

      #: (Oom::Death, IO) -> void
      def write(death, io)
        graph = StringIO.new(String.new(encoding: Encoding::UTF_8))
        title = Oom::Sentences.of(death).first
        if death.profile
          FlameGraph.render(death.profile, graph, title: title, last: LAST_NS, styles: STYLES)
          page = graph.string
          raise FormatError, "the page's template has no place for the report" unless page.include?(MARK)

          before, after = page.split(MARK, 2)
          io << before << MARK << article(death) << after
        else
          io << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>#{escape(title)}</title></head>\n" \
                "<body><main>\n#{article(death)}</main></body></html>\n"
        end
      end

      def article(death)
        <<~HTML
          <article class="death">
          <details open><summary>How it died</summary>
          #{list(Oom::Sentences.of(death))}</details>
          <details><summary>Memory, last minute</summary>
          #{memory(death)}</details>
          <details open><summary>In flight</summary>
          #{spans(death)}</details>
          <details><summary>#{death.stacks_of_the_kill? ? "Threads, at the kill" : "Threads, as last sampled"}</summary>
          #{threads(death)}</details>
          <h2>The last ten seconds</h2>
          </article>
        HTML
      end

      def memory(death)
        rows = death.memory.map do |row|
          [Text.duration([death.end_ns - row.at_ns, 0].max), Text.bytes(row.rss_bytes), Text.bytes(row.cgroup_bytes),
           row.limit_bytes.zero? ? "none" : Text.bytes(row.limit_bytes)]
        end
        table(["before the end", "process", "cgroup", "limit"], rows, "no records")
      end

      def spans(death)
        rows = death.spans.map { |s| [Text.duration(s.wall_ns), s.kind, s.id, s.tid, s.name] }
        table(%w[for kind id thread what], rows, "no request and no job")
      end

      def threads(death)
        paths = Paths.of([death.ring].compact)
        death.threads.map do |thread|
          frames = thread.frames.last(DEPTH).reverse.map { |f| "#{f.name}  #{Text.place(paths.short(f.path), f.line)}".rstrip }
          "<h3>#{escape("thread #{thread.tid} #{thread.name} #{thread.state} #{thread.span && "in #{thread.span}"}")}</h3>\n" \
            "<pre>#{escape(frames.join("\n"))}</pre>\n"
        end.join
      end

      def table(heads, rows, otherwise)
        return "<p>#{escape(otherwise)}</p>\n" if rows.empty?

        cells = rows.map { |row| "<tr>#{row.map { |cell| "<td>#{escape(cell)}</td>" }.join}</tr>\n" }
        "<table><thead><tr>#{heads.map { |head| "<th scope=\"col\">#{escape(head)}</th>" }.join}</tr></thead>\n" \
          "<tbody>#{cells.join}</tbody></table>\n"
      end

      def list(lines)
        "<ul>#{lines.map { |line| "<li>#{escape(line)}</li>" }.join}</ul>\n"
      end

      def escape(text)
        CGI.escapeHTML(Text.clean(text.to_s).gsub("\\n", "\n"))
      end
      private_class_method :article, :memory, :spans, :threads, :table, :list, :escape
    end
  end
end
