# frozen_string_literal: true

require_relative "../shared/filter_words"
require_relative "flame_data"
require_relative "page"
require_relative "payload"
require_relative "profile_columns"

module Sdb
  module Report
    # The flame graph as one HTML file that opens from disk, with no network and no server.
    module FlameGraph
      STYLES = %w[base.css views.css].freeze
      SCRIPTS = %w[base.js theme.js palette.js facts.js keys.js fields.js surface.js box_canvas.js flame_model.js flame_tree.js
                   flame_reversed.js flame_stats.js flame_canvas.js flame_table.js flame_parts.js flamegraph.js].freeze

      module_function

      # Writes the page to +io+.
      #
      # profile:: a Profile, or FlameData
      # metric:: which one to show first
      # filters:: as for every question to a profile; focus, hide and only_app become the page's first choice
      #           and can be undone there
      # styles:: of the page, in order; a page that says more has more
      #: (Profile | FlameData profile, IO io, title: String, ?metric: Symbol, ?styles: Array[String], **untyped filters) -> void
      def render(profile, io, title:, metric: :wall, styles: STYLES, **filters)
        first = filters.slice(:focus, :hide, :only_app)
        data = profile.is_a?(FlameData) ? profile : ProfileColumns.new(profile, **filters.except(*first.keys)).data
        document = data.document.merge(title: Page.clean(title), initial: initial(metric, **first))
        document[:facts] = document[:facts].merge(filters: FilterWords.of(filters.except(*first.keys)))
        Page.write(io, title: title, body: "flamegraph.html", styles: styles, scripts: SCRIPTS,
                       payload: Payload.encode(document, data.columns))
      end

      def initial(metric, focus: nil, hide: nil, only_app: false)
        { metric: metric, only_app: only_app ? true : false, focus: source(focus), hide: source(hide) }.compact
      end

      def source(pattern)
        pattern.is_a?(Regexp) ? pattern.source : pattern
      end
      private_class_method :initial, :source
    end
  end
end
