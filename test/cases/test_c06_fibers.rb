# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# C06: fibers' stacks are seen, and those that were freed never read.
class TestC06Fibers < Minitest::Test
  include CaseHelper

  PROGRAM = <<~RUBY
    #{TOOLS}
    def inner = burn(0.002)
    def in_enumerator = Enumerator.new { |y| 2.times { inner; y << 1 } }
    def in_fiber = Fiber.new { inner; Fiber.yield(1); inner }
    def deep(n) = n.zero? ? Fiber.yield : deep(n - 1)
    rounds = 0
    for_seconds(Float(ENV["SECONDS"])) do
      e = in_enumerator
      e.next
      e.next
      f = in_fiber
      2.times { f.resume }
      # left in the middle: only the collector ends these
      40.times { |i| Fiber.new { deep(50) }.resume }
      Thread.new { 10.times { Fiber.new { deep(5) }.resume }; inner }.join
      GC.start if rounds % 5 == 0
      rounds += 1
    end
    puts "rounds=\#{rounds}"
  RUBY

  def test_fibers_and_enumerators_are_seen_and_those_that_are_freed_do_no_harm
    result = program!(PROGRAM, interval: "100us", env: { "SECONDS" => long(2, 600).to_s })
    assert_operator result.figures["rounds"].to_i, :>, 0
    assert_flat(result.figures, 60_000)
    pairs = stacks(log_of(result)).flat_map { |_, frames, _| frames.map(&:name).each_cons(2).to_a }
    assert_includes pairs, ["block in Object#in_fiber", "Object#inner"]
    assert(pairs.any? { |from, to| from.end_with?("in Object#in_enumerator") && to == "Object#inner" } ||
           pairs.include?(["Integer#times", "block (2 levels) in Object#in_enumerator"]), pairs.uniq.inspect)
    # a fiber's stack is its own: what resumed it is not under it
    bottoms = stacks(log_of(result)).filter_map { |_, frames, _| frames.first.name if frames.any? { |f| f.name == "block in Object#in_fiber" } }
    refute_includes bottoms, "Object#in_fiber"
  end
end
