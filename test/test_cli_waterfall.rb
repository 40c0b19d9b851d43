# frozen_string_literal: true

require_relative "test_helper"
require "support/cli_helper"
require "sdb/profile"
require "sdb/cli/terminal"
require "sdb/cli/waterfall"

class CLIWaterfallTest < Minitest::Test
  MS = 1_000_000

  def frame(name, line = 1) = Sdb::Profile::Frame.new(name: name, path: "/a.rb", line: line)

  # runs: [[ms, state, "outer inner"], ...] one behind the other from `start` ms
  def waterfall(start, *runs)
    at = start
    list = runs.map do |ms, state, stack|
      run = Sdb::Profile::Run.new(at_ns: at * MS, ns: ms * MS, state: state, frames: stack.split.map { |n| frame(n) })
      at += ms
      run
    end
    Sdb::CLI::Waterfall.new(list, start * MS, (at - start) * MS)
  end

  def shape(calls) = calls.map { |c| [c.name, c.depth, c.start_ns / MS, c.duration_ns / MS] }

  def test_a_frame_that_stays_is_one_call
    calls = waterfall(5, [10, "running", "main work"], [20, "blocked", "main work read"]).calls(min_ns: 0)
    assert_equal [["main", 0, 5, 30], ["work", 1, 5, 30], ["read", 2, 15, 20]], shape(calls)
  end

  def test_a_frame_that_comes_back_is_a_new_call
    calls = waterfall(0, [1, "running", "main a"], [2, "running", "main b"], [3, "running", "main a"]).calls(min_ns: 0)
    assert_equal [["main", 0, 0, 6], ["a", 1, 0, 1], ["b", 1, 1, 2], ["a", 1, 3, 3]], shape(calls)
  end

  def test_short_calls_and_deep_ones_can_be_left_out
    waterfall = waterfall(0, [1, "running", "main a"], [9, "running", "main b c"])
    assert_equal %w[main b c], waterfall.calls(min_ns: 2 * MS).map(&:name)
    assert_equal %w[main a b], waterfall.calls(min_ns: 0, depth: 2).map(&:name)
  end

  def test_calls_that_only_lead_to_another_are_counted
    waterfall = waterfall(0, [10, "running", "main a b c mine d e f"], [10, "blocked", "main a b c mine d e g h"])
    kept = waterfall.essential(waterfall.calls(min_ns: 0)) { |call| call.name == "mine" }
    assert_equal [["main", 3], ["mine", 0], ["d", 0], ["e", 0], ["f", 0], ["g", 0], ["h", 0]], kept.map { |call, n| [call.name, n] }
  end

  def test_recursion_deeper_than_rubys_own_stack_is_no_problem
    deep = (["f"] * 9_000).join(" ")
    assert_equal 9_000, waterfall(0, [1, "running", deep], [1, "blocked", deep]).calls(min_ns: 0).size
  end

  def test_the_bar_shows_when_and_in_which_state
    waterfall = waterfall(0, [16, "running", "main work"], [8, "gvl_wait", "main"], [8, "blocked", "main read"])
    terminal = Sdb::CLI::Terminal.new(StringIO.new, env: { "LANG" => "C" })
    main, work, read = waterfall.calls(min_ns: 0)
    assert_equal "################~~~~~~~~........", waterfall.bar(main, terminal)
    assert_equal "################                ", waterfall.bar(work, terminal)
    assert_equal "                        ........", waterfall.bar(read, terminal)
  end

  def test_a_call_shorter_than_a_cell_is_still_seen
    waterfall = waterfall(0, [99, "running", "main"], [1, "running", "main tiny"])
    terminal = Sdb::CLI::Terminal.new(StringIO.new, env: { "LANG" => "C" })
    assert_equal 1, waterfall.bar(waterfall.calls(min_ns: 0).last, terminal).count("#")
  end
end
