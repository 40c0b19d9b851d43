# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# C44: `sdb record` again and again. What it leaves is bounded by SDB_KEEP, and a run that goes on is left alone.
class TestC44RecordManyTimes < Minitest::Test
  include CaseHelper

  EXE = File.expand_path("../../exe/sdb", __dir__)
  RUNS = LONG ? 50 : 6

  def record(*words, keep: "2")
    env = { "TMPDIR" => @dir, "SDB_DIR" => nil, "SDB_KEEP" => keep, "SDB_RING" => "4M" }
    out, err, status = Open3.capture3(env, RbConfig.ruby, EXE, "record", "--", RbConfig.ruby, *words)
    assert_predicate status, :success?, err
    [out, err]
  end

  def logs = Dir[File.join(@dir, "sdb-*", "record-*", "*.sdb")]

  def test_the_newest_logs_stay_and_no_more
    last = Array.new(RUNS) { record("-e", "puts $$").first.to_i }.last(2)
    assert_equal last, logs.map { |path| File.basename(path).to_i }.sort_by { |pid| last.index(pid) || -1 }
    assert_equal 2, Dir[File.join(@dir, "sdb-*", "record-*")].size, "empty directories go, too"
  end

  def test_a_run_with_more_processes_than_that_keeps_its_own_and_none_of_before
    before = record("-e", "puts $$").first.to_i
    record("-e", "3.times { Process.wait(spawn(RbConfig.ruby, '-e', '1')) }", keep: "3")
    assert_includes 3..4, logs.size
    record("-e", "3.times { Process.wait(spawn(RbConfig.ruby, '-e', '1')) }", keep: "3")
    assert_includes 3..4, logs.size
    refute_includes logs.map { |path| File.basename(path).to_i }, before
  end

  def test_a_run_that_goes_on_is_left_alone
    input, out, err, waiter = Open3.popen3({ "TMPDIR" => @dir, "SDB_DIR" => nil, "SDB_RING" => "4M" }, RbConfig.ruby, EXE,
                                           "record", "--", RbConfig.ruby, "-e", "$stdout.sync = true; puts $$; gets; puts :end")
    pid = out.gets.to_i
    3.times { record("-e", "1", keep: "1") }
    assert_includes logs.map { |path| File.basename(path).to_i }, pid
    input.puts
    assert_equal "end\n", out.read
    assert_predicate waiter.value, :success?, err.read
  end
end
