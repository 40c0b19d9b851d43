# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# C49: an app that reloads its code for ever. What it let go goes, although it was seen.
class TestC49CodeChurn < Minitest::Test
  include CaseHelper

  RELOADS = 150

  # A class of 60 methods, again and again, each version at work for 10 ms; then a second of other work, and a GC.
  CHURN = <<~RUBY
    #{TOOLS}
    source = "class Reloaded\\n\#{Array.new(60) { |i| "def work_\#{i} = burn(0.0002)\\n" }.join}end\\n"
    #{RELOADS}.times do
      Object.send(:remove_const, :Reloaded) if Object.const_defined?(:Reloaded)
      Object.class_eval(source, "reloaded.rb", 1)
      reloaded = Reloaded.new
      40.times { |i| reloaded.public_send(:"work_\#{i}") }
    end
    steady = Class.new { def steady_work = burn(0.01) }.new
    100.times { steady.steady_work; sleep 0.001 }
    3.times { GC.start }
    puts "versions=\#{ObjectSpace.each_object(Class).count { |c| c.name == "Reloaded" }}", "names=\#{defined?(Sdb) ? Sdb.status[:symbols][:count] : 0}"
  RUBY

  def test_a_class_that_the_app_let_go_is_collected_although_its_methods_were_seen
    result = program!(CHURN)
    figures = result.figures
    assert_operator figures["names"].to_i, :>, RELOADS, "too few methods were seen to say anything"
    kept_by_ruby = program!(CHURN, with_sdb: false).figures["versions"].to_i # its own caches
    assert_operator figures["versions"].to_i - kept_by_ruby, :<, RELOADS / 4, result.out

    profile = log_of(result)
    seen = names(profile).grep(/\AReloaded#work_\d+\z/)
    assert_operator seen.size, :>, 30
    assert_equal seen.uniq, seen, "the versions of a method are one"
    stacks(profile).each do |_, frames, _|
      frames.each { |f| assert_equal "reloaded.rb", f.path, f.name if f.name.start_with?("Reloaded#") }
    end
  end

  # Seen each 100 ms, never twice in a row; beside it comes what is new.
  RETURNING = <<~RUBY
    #{TOOLS}
    def rare_work = burn(0.004)
    60.times do |i|
      fresh = Object.new
      10.times do |k|
        fresh.instance_eval("def new_\#{i}_\#{k} = burn(0.001)", "new.rb", 1)
        fresh.send(:"new_\#{i}_\#{k}")
      end
      burn(0.03)
      rare_work
    end
    puts "names=\#{Sdb.status[:symbols][:count]}"
  RUBY

  def test_a_method_that_comes_back_has_its_name_each_time
    result = program!(RETURNING)
    rare = log_of(result).functions(metric: :cpu).functions.find { |f| f.name == "Object#rare_work" }
    assert_in_delta 0.24, rare.total_ns / 1e9, 0.08
  end
end
