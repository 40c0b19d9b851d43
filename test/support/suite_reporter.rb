# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# suite_reporter.rb - adds to Minitest's report each skip with its reason and the line that run_suites.rb sums up:
# "N passed, N failed, N skipped".

require "minitest"

module Minitest
  class SuiteReporter < AbstractReporter
    def initialize(io)
      super()
      @io = io
      @counts = Hash.new(0)
      @skips = []
    end

    def record(result)
      @counts[kind(result)] += 1
      @skips << "SKIP #{result.class_name}##{result.name}: #{result.failure.message}" if result.skipped?
    end

    def report
      @io.puts(@skips)
      @io.puts("#{@counts[:passed]} passed, #{@counts[:failed]} failed, #{@counts[:skipped]} skipped")
    end

    private

    def kind(result)
      return :skipped if result.skipped?

      result.passed? ? :passed : :failed
    end
  end

  def self.plugin_suite_reporter_init(_options)
    reporter << SuiteReporter.new($stdout)
  end

  extensions << "suite_reporter"
end
