# frozen_string_literal: true

require_relative "../shared/categories"
require_relative "../value"
require_relative "../shared/paths"
require_relative "flame_data"
require_relative "page"
require_relative "payload"

module Sdb
  module Report
    # One request or job over time as one HTML file: its calls, the state of its thread, and who held the GVL
    # while it waited.
    class StackChart
      STYLES = %w[base.css views.css].freeze
      SCRIPTS = %w[base.js theme.js palette.js keys.js fields.js surface.js box_canvas.js stack_model.js stack_canvas.js
                   stack_parts.js stack_chart.js].freeze
      STATES = %w[running gvl_wait blocked gc unknown].freeze
      FIELDS = %i[id kind name start wall_ns cpu_ns allocations status pid tid tags open trace_id].freeze
      private_constant :STYLES, :SCRIPTS, :FIELDS

      # Writes the page to +io+.
      #
      # span:: the document of `sdb request ID --json`: a Profile::Request, or a Hash with symbol or string keys
      # roots:: directories of the profiled application, which tell its own code from the rest
      #: (Profile::Request | Hash span, IO io, title: String, ?roots: Array[String]) -> void
      def self.render(span, io, title:, roots: [])
        new(span, roots).render(io, title)
      end

      def initialize(span, roots)
        @plain = {}.compare_by_identity
        @numbers = {}.compare_by_identity
        @span = plain(span)
        @categories = Categories.new(roots)
        @paths = Paths.new(roots)
        @strings = {}
        @functions = {}
        @stacks = {}
        @holders = {}
        @columns = %i[run_at run_ns run_state run_stack run_holder].to_h { |name| [name, []] }
        read(@span[:runs] || [])
      end

      def render(io, title)
        columns = dictionaries.merge(@columns) # before the strings: it adds to them
        document = { title: Page.clean(title), categories: FlameData::CATEGORIES, states: STATES, span: fields,
                     holders: @holders.keys, strings: @strings.keys }
        Page.write(io, title: title, body: "stack_chart.html", styles: STYLES, scripts: SCRIPTS,
                       payload: Payload.encode(document, columns))
      end

      private

      # The same stack is often the very same Array: it becomes one, too.
      def plain(value)
        case value
        when nil, String, Symbol, Numeric then value
        when Hash then value.to_h { |key, inner| [key.to_sym, plain(inner)] }
        when Array then @plain[value] ||= value.map { |inner| plain(inner) }
        when Value then @plain[value] ||= value.class.fields.to_h { |field| [field, plain(value.public_send(field))] }
        else value.respond_to?(:to_h) ? plain(value.to_h) : value
        end
      end

      def fields
        @span.slice(*FIELDS).transform_values { |value| value.is_a?(Hash) ? tags(value) : text(value) }
      end

      def tags(pairs)
        pairs.to_h { |key, value| [Page.clean(key.to_s), Page.clean(value.to_s)] }
      end

      def text(value)
        value.is_a?(String) || value.is_a?(Symbol) ? Page.clean(value.to_s) : value
      end

      # Runs are put on the span's own clock and one after the other; what has no length is left out.
      def read(runs)
        runs = runs.select { |run| run[:ns].to_i.positive? }.sort_by { |run| run[:at_ns] }
        zero = @span[:start_ns] || (runs.first && runs.first[:at_ns]) || 0
        runs.each do |run|
          @columns[:run_at] << [run[:at_ns] - zero, 0].max
          @columns[:run_ns] << run[:ns]
          @columns[:run_state] << (STATES.index(run[:state].to_s) || (STATES.size - 1))
          @columns[:run_stack] << (stack(run[:frames] || []) + 1)
          @columns[:run_holder] << (run[:holder] ? holder(run[:holder]) + 1 : 0)
        end
      end

      # Number of the stack of these frames, root first; -1 for none.
      def stack(frames)
        @numbers[frames] ||= frames.inject(-1) do |parent, frame|
          key = [parent, function(frame), frame[:line].to_i]
          @stacks[key] ||= @stacks.size
        end
      end

      # The line a function has in the document is that of the run; a function is its name and path.
      def function(frame)
        key = [Page.clean(frame[:name]), frame[:path].to_s.empty? ? nil : Page.clean(frame[:path])]
        @functions[key] ||= @functions.size
      end

      def holder(holder)
        key = { span_name: holder[:span_name] && Page.clean(holder[:span_name]),
                thread: holder[:thread] && Page.clean(holder[:thread].to_s),
                frames: (holder[:frames] || []).map { |frame| string(Page.clean(frame.is_a?(Hash) ? frame[:name] : frame)) } }
        @holders[key] ||= @holders.size
      end

      def string(text)
        @strings[text] ||= @strings.size
      end

      def dictionaries
        functions = @functions.keys
        stacks = @stacks.keys
        {
          func_name: functions.map { |name, _| string(name) },
          func_path: functions.map { |_, path| path ? string(path) + 1 : 0 },
          func_place: functions.map { |_, path| path ? string(@paths.short(path)) + 1 : 0 },
          func_line: functions.map { 0 },
          func_category: functions.map { |name, path| FlameData::CATEGORIES.index(@categories.of(name, path)) },
          stack_up: stacks.each_with_index.map { |(parent, _, _), i| parent.negative? ? 0 : i - parent },
          stack_func: stacks.map { |_, function, _| function },
          stack_line: stacks.map { |_, _, line| [line, 0].max }
        }
      end
    end
  end
end
