# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# C20: the share of time that the collector takes.
class TestC20GcShare < Minitest::Test
  include CaseHelper

  PROGRAM = <<~RUBY
    #{TOOLS}
    $keep = Array.new(20_000) { |i| "kept \#{i}" }
    def allocate = 20_000.times { |i| [i, i.to_s, { i => "x" * 50 }] }
    Sdb.stop
    Sdb.start(dir: ENV["SDB_DIR"], interval: 0.001, max_cpu: 0, ring: 8 << 20)
    gc = GC.stat(:time)
    cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
    finish = cpu + Float(ENV["SECONDS"])
    (allocate; GC.start if rand < 0.02) while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
    cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) - cpu
    gc = GC.stat(:time) - gc
    puts "gc=\#{gc / 10.0 / cpu}", "path=\#{Sdb.stop}"
  RUBY

  # 3.1 tells no begin and end of the collector that the scanner could use: it is seen by the ticks, to a tick.
  POINTS = RUBY_VERSION < "3.2" ? 5 : 2

  # Both are shares of the program's own time, which a busy machine stretches evenly.
  def test_the_share_of_gc_is_that_of_gc_stat_within_2_points
    differences = []
    3.times do
      differences << difference
      break if differences.last < POINTS
    end
    assert_operator differences.min, :<, POINTS, differences.inspect
  end

  private

  def difference
    figures = program!(PROGRAM, env: { "SECONDS" => long(1, 20).to_s }).figures
    main = Sdb.open(figures["path"]).threads.threads.find { |t| t.name == "main" }
    share = 100.0 * main.gc_ns / (main.gc_ns + main.running_ns)
    assert_operator share, :>, 1
    (share - figures["gc"].to_f).abs
  end
end
