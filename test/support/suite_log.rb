# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# suite_log.rb - what a suite's log says: how many tests passed, failed and were skipped, and why.
# Knows the line that our runners print ("3 passed, 0 failed, 1 skipped", and "SKIP what: why" for each skip) and
# the closing lines of node's test runner.

class SuiteLog
  SUMMARY = /(?<!\d)(\d+) passed, (\d+) failed, (\d+) skipped/
  NODE = /^(?:#|ℹ) (pass|fail|skipped|todo|cancelled) (\d+)$/
  NODE_KINDS = { "pass" => :passed, "fail" => :failed, "cancelled" => :failed, "skipped" => :skipped, "todo" => :skipped }
               .freeze

  attr_reader :counts, :skips

  # text: the whole log, valid UTF-8.
  def initialize(text)
    @counts = { passed: 0, failed: 0, skipped: 0 }
    plain = text.gsub(/\e\[[\d;]*m/, "")
    plain.scan(SUMMARY) { |numbers| add(@counts.keys.zip(numbers.map(&:to_i))) }
    plain.scan(NODE) { |kind, number| add([[NODE_KINDS.fetch(kind), number.to_i]]) }
    @skips = plain.scan(/^(?:.*# SKIP .*|\s*SKIP .*)$/).map(&:strip).uniq
  end

  private

  def add(pairs)
    pairs.each { |kind, number| @counts[kind] += number }
  end
end
