# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# C02 and C05: threads by the thousand, that end in every way.
class TestC02C05Threads < Minitest::Test
  include CaseHelper

  C02 = <<~RUBY
    #{TOOLS}
    rounds = 0
    for_seconds(Float(ENV["SECONDS"])) do
      x = 1
      Thread.new { y = x; [1, 2].each { |z| [z].map { |w| x += w + y; Thread.new { x }.join } } }.join
      rounds += 1
    end
    puts "rounds=\#{rounds}"
  RUBY

  def test_blocks_that_escape_into_threads
    result = program!(C02, interval: "100us", env: { "SECONDS" => long(1, 600).to_s })
    assert_operator result.figures["rounds"].to_i, :>, 0
    assert_operator log_of(result).functions.total_ns, :>, 0
    assert_flat(result.figures, 40_000)
  end

  C05 = <<~RUBY
    #{TOOLS}
    Thread.report_on_exception = false
    def deep(n, &block) = n.zero? ? block.call : deep(n - 1, &block)
    ENDS = {
      raises: -> { deep(30) { raise "x" } }, throws: -> { deep(30) { throw :nobody } }, exits: -> { deep(30) { Thread.exit } },
      aborts_its_sleep: -> { sleep }, killed_busy: -> { loop { deep(20) { 1 } } }, returns: -> { 1 }
    }
    # Status and the table follow within some ticks; how soon, depends on the machine.
    def settled(wanted)
      finish = now + 20
      sleep 0.01 while Sdb.status[:threads][:live] > wanted && now < finish
      Sdb.status[:threads][:live]
    end
    sleep 0.2
    before = Sdb.status[:threads][:live]
    rounds = 0
    for_seconds(Float(ENV["SECONDS"])) do
      threads = ENDS.map { |name, work| Thread.new { work.call } }
      Thread.pass
      threads.last(3).first(2).each { |t| rounds.odd? ? t.kill : t.raise("into") }
      threads.each { |t| t.join rescue nil }
      rounds += 1
    end
    puts "before=\#{before}", "after=\#{settled(before)}", "rounds=\#{rounds}", "seen=\#{Sdb.status[:threads][:seen]}"
    puts "lost=\#{Sdb.status[:warnings].grep(/not recorded/).size}"
  RUBY

  def test_threads_that_raise_throw_exit_and_are_killed_leave_nothing_behind
    result = program!(C05, interval: "100us", env: { "SECONDS" => long(1.5, 600).to_s })
    figures = result.figures.transform_values(&:to_i)
    assert_operator figures["after"], :<=, figures["before"], result.out
    assert_operator figures["rounds"], :>, 2
    assert_equal 0, figures["lost"]
    assert_flat(result.figures, 40_000)
    assert_operator log_of(result).functions.total_ns, :>, 0
  end
end
