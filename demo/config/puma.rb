# frozen_string_literal: true

threads 5, 5
workers Integer(ENV.fetch("DEMO_WORKERS", "0"))
preload_app! if Integer(ENV.fetch("DEMO_WORKERS", "0")).positive?
bind "tcp://127.0.0.1:#{ENV.fetch("PORT", "9292")}"
environment ENV.fetch("RAILS_ENV", "production")
rackup File.expand_path("../config.ru", __dir__)
