# frozen_string_literal: true

require_relative "../test_helper"
require "json"
require "support/case_helper"

# C42: what a log takes from the disk is what the process had to tell, and short tools push out no worker's.
class TestC42WhatALogCosts < Minitest::Test
  include CaseHelper

  def taken(path) = File.stat(path).blocks * 512

  def path_of(result) = Dir[File.join(@dir, "#{result.pid}-*.sdb")].first

  def test_a_process_that_lives_for_a_moment_leaves_some_kilobytes
    result = program!("puts taken = File.stat(Sdb.status[:ring]).blocks * 512, Sdb.status[:ring_bytes]", ring: "64M")
    while_it_lived, = result.out.split.map(&:to_i)
    assert_operator while_it_lived, :<, 4 << 20
    assert_operator taken(path_of(result)), :<, 256 << 10
    assert_operator File.size(path_of(result)), :>, 60 << 20, "the size stays, as holes"
    assert_equal 0, log_of(result).lost[:ring].to_i
  end

  FILLING = <<~RUBY
    #{TOOLS}
    filler = "x" * 1000
    (1..Integer(ENV["MARKS"])).each do |number|
      Sdb.mark("\#{number} \#{filler}")
      sleep 0.002 if number % 20 == 0
    end
    sleep 0.05
    puts Sdb.status[:warnings]
    $stdout.flush
    exit!(0)
  RUBY

  def test_a_ring_grows_as_it_is_needed_and_loses_nothing
    result = program!(FILLING, ring: "16M", env: { "MARKS" => "5000" })
    assert_empty result.out
    assert_includes (5 << 20)..(9 << 20), taken(path_of(result))
    assert_equal (1..5000).to_a, log_of(result).marks.map { |mark| mark.text.to_i }
  end

  # More than the disk holds: the log goes round in what there is, says so, and what it has is whole.
  def test_a_ring_on_a_full_disk_keeps_the_end
    skip "needs root to mount a small disk" unless Process.euid.zero?
    disk = File.join(@dir, "disk")
    Dir.mkdir(disk)
    skip "cannot mount here" unless system("mount", "-t", "tmpfs", "-o", "size=6m,mode=700", "tmpfs", disk)
    result = program!(FILLING, ring: "64M", dir: disk, env: { "MARKS" => "12000" })
    assert_match(/\Athe disk is full: the log keeps its last \d MiB only\Z/, result.out)
    profile = log_of(result, dir: disk)
    marks = profile.marks.map { |mark| mark.text.to_i }
    assert_equal 12_000, marks.last
    assert_operator marks.size, :>, 2000
    assert_equal (marks.first..12_000).to_a, marks
    assert_empty profile.warnings.grep(/missing|damaged|lost/)
    assert_match(/the disk is full/, profile.rings.first.status.warnings.join)
  ensure
    system("umount", disk, err: File::NULL) if disk
  end

  def test_short_tools_push_out_each_other_and_no_worker_that_was_killed
    env = { "SDB_KEEP" => "4", "SDB_RECORD" => "1" }
    workers = Array.new(2) { program("sleep 0.3; Process.kill(:KILL, $$)", ring: "4M", env: env).pid }
    tools = Array.new(long(8, 50)) { program!("1", ring: "4M", env: env).pid }
    kept = Dir.children(@dir).grep(/\.sdb\z/).map(&:to_i)
    assert_empty workers - kept
    assert_equal tools.last(3).sort, (kept - workers).sort, "two of before, and the last one's own"
  end
end
