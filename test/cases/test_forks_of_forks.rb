# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# Pitchfork makes its workers from workers: each generation is the child of the one before.
class TestForksOfForks < Minitest::Test
  include CaseHelper

  GENERATIONS = 12

  REFORK = <<~RUBY
    #{TOOLS}
    def figures = [File.foreach("/proc/self/maps").count, File.read("/proc/self/status")[/RssAnon:\\s+(\\d+)/, 1].to_i]
    def generation(n)
      100.times { |i| Object.new.instance_eval("def made_\#{n}_\#{i} = burn(0.0005)\\nmade_\#{n}_\#{i}", "made.rb", 1) }
      sleep 0.05
      puts "mappings\#{n}=\#{figures[0]}", "own_kb\#{n}=\#{figures[1]}"
      $stdout.flush
      Process.wait(fork { generation(n + 1); Sdb.stop if defined?(Sdb); exit!(0) }) if n < #{GENERATIONS}
    end
    generation(0)
  RUBY

  def test_a_generation_does_not_keep_the_tables_of_the_one_before
    more = [true, false].map do |with_sdb|
      figures = program!(REFORK, with_sdb: with_sdb).figures
      %w[mappings own_kb].map { |name| figures.fetch("#{name}#{GENERATIONS}").to_i - figures.fetch("#{name}1").to_i }
    end
    with, without = more
    assert_operator with[0] - without[0], :<, GENERATIONS, "mappings"
    assert_operator with[1] - without[1], :<, GENERATIONS * 60, "KB"
  end

  def test_each_generation_has_a_whole_log
    program!(REFORK)
    names = Dir[File.join(@dir, "*.sdb")].map { |ring| names(Sdb.open(ring)).filter_map { |name| name[/made_(\d+)_/, 1] }.uniq }
    assert_equal((0..GENERATIONS).map { |n| [n.to_s] }, names.sort_by { |found| found.first.to_i })
  end

  STOPPED = <<~RUBY
    #{TOOLS}
    Sdb.stop
    Process.wait(fork { Sdb.start; burn(0.05); exit!(Sdb.stop ? 0 : 1) })
    puts "ended=\#{$?.exitstatus.inspect}"
  RUBY

  def test_a_child_may_begin_when_its_parent_had_stopped
    assert_equal "0", program!(STOPPED).figures["ended"]
  end
end
