# frozen_string_literal: true

# A small Rails app that knows nothing of sdb but the line in its bundle and one tag. SHOP_ROOT: where its app/ is (the reloading
# test edits a copy). SHOP_OTEL: OpenTelemetry with its own Rack middleware's job done by hand.
require "bundler/setup"
require "logger"
require "rails"
require "active_record/railtie"
require "active_job/railtie"
require "action_controller/railtie"
require "opentelemetry-sdk" if ENV["SHOP_OTEL"]
Bundler.require(:default)
OpenTelemetry::SDK.configure if ENV["SHOP_OTEL"]

module Shop
  # What OpenTelemetry's Rack instrumentation does, which is a gem of its own.
  class Tracing
    def initialize(app)
      @app = app
    end

    def call(env)
      OpenTelemetry.tracer_provider.tracer("shop").in_span("rack") { @app.call(env) }
    end
  end

  class Application < Rails::Application
    config.load_defaults 7.2
    config.root = ENV.fetch("SHOP_ROOT", __dir__)
    config.eager_load = Rails.env.production?
    config.enable_reloading = !Rails.env.production?
    config.consider_all_requests_local = false
    config.secret_key_base = "for tests only"
    config.hosts.clear
    config.logger = ActiveSupport::TaggedLogging.new(ActiveSupport::Logger.new(ENV["SHOP_LOG"] || File::NULL))
    config.filter_parameters += [:token]
    config.log_tags = [:request_id]
    config.active_job.queue_adapter = :async
    config.cache_store = :memory_store
    config.middleware.use Tracing if ENV["SHOP_OTEL"]
    config.paths["config/database"] = [File.expand_path("database.yml", __dir__)]
    config.sdb.spans = ENV["SHOP_SPANS"].split(",") if ENV["SHOP_SPANS"] && config.respond_to?(:sdb)

    routes.append do
      get "products/:id", to: "products#show"
      get "products", to: "products#index"
      get "busy", to: "busy#show"
      get "slow", to: "slow#show"
      get "held", to: "held#show"
      get "planted", to: "slow#planted"
      get "later", to: "products#later"
      get "fail", to: "products#fail"
      get "id", to: "products#request_id"
      get "tagged/:token", to: "products#tagged"
    end
  end
end
