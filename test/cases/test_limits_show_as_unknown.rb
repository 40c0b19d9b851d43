# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# What is longer, deeper or more than the log can take shows as not known or as cut, never as something else.
class TestLimitsShowAsUnknown < Minitest::Test
  include CaseHelper

  # The method's own lines burn at 9000 and, behind more lines than a symbol has, at 40000.
  LONG_METHOD = <<~RUBY
    #{TOOLS}
    lines = Array.new(40_001) { "x += 1" }
    lines[0] = "def long_one(x)"
    lines[9_000 - 1] = lines[40_000 - 1] = "burn(0.1)"
    lines[40_000] = "end"
    eval(lines.join("\\n"), binding, "long.rb", 1)
    long_one(1)
  RUBY

  def test_a_line_far_down_in_a_method_is_itself_and_one_beyond_the_limit_is_none
    times = Hash.new(0)
    log_of(program!(LONG_METHOD)).each_stack(metric: :cpu) do |_, _, frames, ns|
      frame = frames.find { |f| f.name.end_with?("long_one") } or next
      times[frame.line] += ns / 1_000_000
    end
    assert_in_delta 100, times.delete(9_000), 20
    assert_in_delta 100, times.delete(0), 20
    assert_operator times.values.sum, :<, 20, times.inspect
  end

  LONG_NAMES = <<~RUBY
    #{TOOLS}
    %w[a b].each do |last|
      name = "m" * 5000 + last
      Object.new.instance_eval("def \#{name} = burn(0.05)\\n\#{name}", "/\#{"p" * 5000}.rb", 1)
    end
    Thread.new { Thread.current.name = "ä" * 100; 3.times { burn(0.05); sleep 0.02 } }.join
  RUBY

  def test_a_name_that_was_cut_says_so
    profile = log_of(program!(LONG_NAMES))
    long = profile.functions.functions.select { |f| f.name.include?("mmmm") }
    refute_empty long
    long.each do |f|
      assert f.name.end_with?("m…"), f.name[-10..]
      assert f.path.end_with?("p…"), f.path[-10..]
    end
    assert_includes stacks(profile).map(&:first), "#{"ä" * 62}…"
  end
end
