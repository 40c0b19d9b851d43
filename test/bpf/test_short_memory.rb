# frozen_string_literal: true

require "test_helper"
require "bpf/support"
require "sdb/open"

# A process whose cgroup is nearly full is killed, with no daemon: its log ends with the tick before, and says that
# memory was short.
class TestShortMemory < Minitest::Test
  include BlackBox::Setup

  # Tells on standard output what it marked in its log and when.
  PROGRAM = <<~RUBY
    $stdout.sync = true
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    kept = "x" * Integer(ENV["KEPT"])
    sleep 0.3
    number = 0
    loop do
      number += 1
      Sdb.mark(number.to_s)
      puts "\#{number} \#{now}"
      till = now + 0.0002
      nil while now < till
    end
  RUBY
  LIMIT = 64 << 20

  def test_one_tick_is_lost_when_memory_was_short
    # the scanner of a busy machine may come late to a tick: that is told as a late tick, and no loss
    tries = Array.new(5) { killed(kept: LIMIT * 6 / 10) }
    assert_operator tries.map(&:first).min, :<, 2.5, tries.map(&:first).inspect
    tries.each do |_, profile|
      assert_operator profile.pre_ooms.map(&:percent).max, :>=, 80
      assert_operator profile.memory.map(&:cgroup_bytes).max, :>, LIMIT * 0.8
      assert_equal LIMIT, profile.memory.last.limit_bytes
    end
  end

  def test_with_memory_enough_there_is_no_warning
    assert_empty killed(kept: 1).last.pre_ooms
  end

  private

  # @return [ms between the last mark that it told of and the last in its log, its profile]
  def killed(kept:)
    rings = Dir.mktmpdir("rings", @base)
    env = { "SDB" => nil, "SDB_DIR" => rings, "SDB_RING" => "8M", "SDB_MAX_CPU" => "0", "SDB_OOMD" => "#{@base}/none.sock",
            "KEPT" => kept.to_s }
    reader, out = IO.pipe
    group = cgroup(LIMIT)
    command = ["sh", "-c", "echo $$ > #{group.procs}; exec \"$@\"", "sh", RbConfig.ruby, "-I#{BlackBox::ROOT}/lib", "-rsdb/auto", "-e", PROGRAM]
    pid = spawn(env, *command, in: File::NULL, out: out)
    out.close
    lines = Thread.new { reader.each_line.to_a }
    sleep 1.2
    Process.kill(:KILL, pid)
    Process.wait(pid)
    told = lines.value.map(&:split).select { |line| line.size == 2 }.to_h { |number, at| [number.to_i, at.to_f] }
    profile = Sdb.open(Dir["#{rings}/*.sdb"].first)
    last = profile.marks.map { |mark| mark.text.to_i }.max
    @cgroups.delete(group).remove
    [(told.fetch(told.keys.max) - told.fetch([last, told.keys.max].min)) * 1000, profile]
  end
end
