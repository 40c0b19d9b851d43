# frozen_string_literal: true

ENV["BUNDLE_GEMFILE"] ||= File.expand_path("../Gemfile", __dir__)
ENV["RAILS_ENV"] ||= "production"
require "bundler/setup"
# Rails 7.2 on Ruby 3.1 uses Logger before it loads it.
require "logger"
