# frozen_string_literal: true

# `bundle exec` leaves -rbundler/setup in RUBYOPT, and on newer Rubies BUNDLER_SETUP. A Ruby that a test starts must be
# one as a user starts it, without the bundle of the tests.
ENV.delete("BUNDLER_SETUP")
if ENV["RUBYOPT"]
  left = ENV["RUBYOPT"].split.reject { |option| option.include?("bundler/setup") }.join(" ")
  ENV["RUBYOPT"] = left.empty? ? nil : left
end

$LOAD_PATH.unshift File.expand_path("../lib", __dir__), File.expand_path(__dir__)
require "minitest/autorun"
