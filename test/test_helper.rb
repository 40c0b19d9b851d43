# frozen_string_literal: true

$LOAD_PATH.unshift File.expand_path("../lib", __dir__), File.expand_path(__dir__)
require "minitest/autorun"
