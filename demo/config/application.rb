# frozen_string_literal: true

# A small blog-like shop with the troubles that real apps have: an N+1 query, a report that computes in Ruby, a
# slow service behind a socket, a cache. It does nothing about sdb beyond having the gem in its Gemfile.

require_relative "boot"
require "rails"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"

Bundler.require(*Rails.groups)

module Demo
  class Application < Rails::Application
    config.load_defaults 7.2
    config.root = File.expand_path("..", __dir__)
    config.eager_load = true
    config.enable_reloading = false
    config.consider_all_requests_local = true
    config.public_file_server.enabled = false
    config.secret_key_base = "only for a demo on this machine"
    config.cache_store = :memory_store, { size: 16 << 20 }
    config.hosts.clear
    config.action_controller.perform_caching = true
    config.log_level = :info
    config.logger = ActiveSupport::Logger.new(ENV["DEMO_LOG"] || File.expand_path("../../tmp/demo.log", __dir__))
    config.paths["config/database"] = [File.expand_path("database.yml", __dir__)]
    # The service that the checkout calls; in the demo a thread of the load generator.
    config.x.payment_port = Integer(ENV.fetch("DEMO_PAYMENT_PORT", "0"))
  end
end
