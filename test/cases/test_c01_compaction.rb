# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# C01: the collector moves objects and code while the scanner reads at 0.1 ms.
class TestC01Compaction < Minitest::Test
  include CaseHelper

  # Method tower_N calls floor_N calls room_N, so every call is known.
  PROGRAM = <<~RUBY
    #{TOOLS}
    class Tower
      50.times do |i|
        class_eval("def tower_\#{i} = floor_\#{i}\\ndef floor_\#{i} = room_\#{i}\\ndef room_\#{i} = burn(0.0004)", "tower_\#{i}.rb")
      end
    end
    $live = Array.new(Integer(ENV["LIVE"])) { |i| i.odd? ? "object \#{i} of many" : [i] }
    tower = Tower.new
    rounds = 0
    worker = Thread.new { loop { 50.times { |i| tower.send(:"tower_\#{i}") } } }
    GC.auto_compact = true if ENV["AUTO"]
    for_seconds(Float(ENV["SECONDS"])) do
      ENV["AUTO"] ? GC.start : GC.compact
      50.times { |i| tower.send(:"tower_\#{i}") }
      rounds += 1
    end
    worker.kill
    puts "rounds=\#{rounds}", "right=\#{$live.each_with_index.all? { |o, i| i.odd? ? o == "object \#{i} of many" : o == [i] }}"
  RUBY

  def test_gc_compact_with_many_live_objects_breaks_nothing_and_no_name = check({})
  def test_auto_compact_with_many_live_objects_breaks_nothing_and_no_name = check({ "AUTO" => "1" })

  private

  def check(env)
    env = env.merge("LIVE" => long(100_000, 400_000).to_s, "SECONDS" => long(1, 120).to_s)
    result = program!(PROGRAM, interval: "100us", env: env)
    assert_equal "true", result.figures["right"]
    assert_operator result.figures["rounds"].to_i, :>, 0
    seen = 0
    stacks(log_of(result)).each do |_, frames, _|
      tower = frames.select { |f| f.name.start_with?("Tower#") }
      seen += tower.size
      number = tower.first&.name.to_s[/\d+/]
      assert_equal ["Tower#tower_#{number}", "Tower#floor_#{number}", "Tower#room_#{number}"].first(tower.size), tower.map(&:name)
      assert_equal ["tower_#{number}.rb"], tower.map(&:path).uniq unless tower.empty?
    end
    assert_operator seen, :>, 20
  end
end
