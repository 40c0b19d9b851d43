# frozen_string_literal: true

require_relative "../rails"

module Sdb
  module Rails
    # In a Rails app with sdb in its bundle: the rake tasks. With SDB=1 (or sdb/auto) also the middleware, outermost, so
    # that each request is a span named Controller#action.
    #
    # config.sdb.spans = %i[sql cache view http mail] (or SDB_SPANS=sql,cache): child spans of these kinds.
    class Railtie < ::Rails::Railtie
      config.sdb = ActiveSupport::OrderedOptions.new
      config.sdb.spans = ENV["SDB_SPANS"].to_s.split(",").map { |name| name.strip.to_sym }.reject(&:empty?)

      rake_tasks { require_relative "../../tasks" }

      initializer "sdb.middleware" do |app|
        app.middleware.insert_before(0, Sdb::Rails::Middleware) if Sdb.auto?
      end

      # When the app's own initializers have set OpenTelemetry up.
      initializer "sdb.trace", after: :load_config_initializers, before: :build_middleware_stack do |app|
        app.middleware.use(Sdb::Rails::Trace) if Sdb.auto? && defined?(::OpenTelemetry::Trace)
      end

      # What Rails keeps out of its own log stays out of this one.
      initializer "sdb.filter", after: :load_config_initializers do |app|
        names = app.config.filter_parameters
        next if !Sdb.auto? || Sdb.tag_filter || names.empty?

        require "active_support/parameter_filter"
        filter = ActiveSupport::ParameterFilter.new(names)
        Sdb.filter { |tags| filter.filter(tags) }
      end

      initializer "sdb.spans", after: :load_config_initializers do |app|
        next unless Sdb.auto?

        unknown = Sdb::Rails::Notifications.subscribe(Array(app.config.sdb.spans))
        known = Sdb::Rails::Notifications::PATTERNS.keys
        warn "sdb: unknown kinds of spans: #{unknown.join(", ")} (known: #{known.join(", ")})" unless unknown.empty?
      end

      # The class itself is what Rails asks for.
      #: (Class) -> bool
      def self.arrange(_railtie) = true
    end
  end
end
