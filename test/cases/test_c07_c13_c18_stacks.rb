# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# C07, C13 and C18: the main thread alone, recursion and deep stacks.
class TestC07C13C18Stacks < Minitest::Test
  include CaseHelper

  def test_a_script_that_works_only_on_its_main_thread_is_profiled
    result = program!("#{TOOLS}\ndef work = burn(0.3)\nwork\n")
    profile = log_of(result)
    work = profile.functions.functions.find { |f| f.name == "Object#work" }
    assert work, names(profile).inspect
    # 0.3 s of CPU time take no less of wall time, however busy the machine is
    assert_operator work.total_ns, :>, 250_000_000
    assert(profile.threads.threads.any? { |t| t.name == "main" })
  end

  C13 = <<~RUBY
    #{TOOLS}
    def down(n) = n.zero? ? 0 : 1 + down(n - 1)
    sum = calls = 0
    from = now
    before = Sdb.status
    while calls < Integer(ENV["CALLS"])
      sum += down(1500)
      calls += 1
    end
    passed = now - from
    after = Sdb.status
    puts "sum=\#{sum}", "due=\#{(passed / 0.0001).to_i}", "ticks=\#{after[:ticks] - before[:ticks]}"
    puts "late=\#{after[:late_ticks] - before[:late_ticks]}", "state=\#{after[:state]}"
  RUBY

  def test_deep_recursion_progresses_at_0_1_ms_and_ticks_that_came_late_are_counted
    calls = long(3_000, 300_000)
    result = program!(C13, interval: "100us", env: { "CALLS" => calls.to_s })
    figures = result.figures
    assert_equal [(calls * 1500).to_s, "running"], figures.values_at("sum", "state")
    ticks, late, due = figures.values_at("ticks", "late", "due").map(&:to_i)
    assert_operator ticks, :>, 0
    assert_operator late, :>, 0, "#{ticks} of #{due} ticks" if ticks < due * 0.8
    assert_includes names(log_of(result)), "Object#down"
  end

  C18 = <<~RUBY
    #{TOOLS}
    def down(n) = n.zero? ? burn(0.2) : down(n - 1)
    def by_block(n) = n.zero? ? burn(0.2) : [n].each { |m| by_block(m - 1) }
    down(1198)
    by_block(400)
  RUBY

  def test_stacks_of_1200_frames_are_complete
    profile = log_of(program!(C18))
    deep = stacks(profile).map { |_, frames, _| frames.map(&:name) }
    methods = deep.select { |s| s.count("Object#down") == 1199 }
    refute_empty methods, deep.map(&:size).inspect
    assert(methods.all? { |s| s.first(2) == ["<main>", "Object#down"] })
    blocks = deep.select { |s| s.count("Object#by_block") == 401 }
    refute_empty blocks, deep.map(&:size).inspect
    assert(blocks.all? { |s| s.count("Array#each") == 400 && s.count("block in Object#by_block") == 400 })
    assert_empty profile.warnings.grep(/truncated/)
  end

  def test_a_stack_as_deep_as_ruby_lets_it_be_is_complete_or_marked
    result = program!(<<~RUBY)
      #{TOOLS}
      def down(n)
        $deepest = n
        down(n + 1)
      end
      begin
        down(0)
      rescue SystemStackError
        limit = $deepest - 300
      end
      def again(n) = n.zero? ? burn(0.3) : again(n - 1)
      again(limit)
      puts "limit=\#{limit}"
    RUBY
    limit = result.figures["limit"].to_i
    deepest = stacks(log_of(result)).map { |_, frames, _| frames.count { |f| f.name == "Object#again" } }.max
    assert_equal limit + 1, deepest
  end
end
