# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# C09, C11 and C12: what a recording must not do to the calls of the app: hang its forks, interrupt its waits.
class TestC09C11C12HostCalls < Minitest::Test
  include CaseHelper

  FORKS = <<~RUBY
    #{TOOLS}
    def work(x) = x.to_s * 2
    $keep = Array.new(50_000) { |i| i.to_s }
    Array.new(8) { |n| Thread.new { loop { 100.times { |i| work(i + n) } } } }
    slowest = 0.0
    bad = 0
    Integer(ENV["TIMES"]).times do |i|
      from = now
      pid = i.even? ? fork { exit(7) } : fork { work(1); Thread.new { work(2) }.join; exit!(7) }
      status = nil
      status = Process.wait2(pid, Process::WNOHANG)&.last until status || now - from > 30
      Process.kill(:KILL, pid) unless status
      bad += 1 unless status&.exitstatus == 7
      slowest = [slowest, now - from].max
    end
    puts "bad=\#{bad}", "slowest=\#{slowest}"
  RUBY

  # Children of a process of which eight threads are busy: each ends by itself, as it would. 30 s is a hang.
  def test_children_that_are_forked_beside_8_busy_threads_end
    figures = program!(FORKS, interval: "100us", env: { "TIMES" => long(60, 500).to_s }).figures
    assert_equal "0", figures["bad"], figures.inspect
  end

  def test_a_poll_that_nobody_retries_is_never_interrupted
    result = program!(<<~RUBY, interval: "100us", env: { "TIMES" => long(400, 20_000).to_s })
      native = Sdb.const_get(:Native)
      abort native.recorder_missing if native.recorder_missing
      testing = native.const_get(:Testing)
      busy = Thread.new { loop { 100.times { |i| i.to_s } } }
      errors = Integer(ENV["TIMES"]).times.map { testing.poll_once(2) }.reject(&:zero?)
      puts "ticks=\#{Sdb.status[:ticks] > 100}", "errors=\#{errors.size}"
    RUBY
    assert_equal({ "ticks" => "true", "errors" => "0" }, result.figures)
  end

  def test_globs_and_reads_are_the_same
    code = <<~RUBY
      Dir.chdir(#{File.expand_path("../..", __dir__).dump})
      all = Integer(ENV["TIMES"]).times.map { Dir.glob("lib/sdb/*.rb").sort.hash }.uniq.size
      reader, writer = IO.pipe
      Thread.new { 2000.times { |i| writer.write("\#{i}\\n"); sleep 0.0002 if i % 10 == 0 }; writer.close }
      puts "globs=\#{all}", "lines=\#{reader.each_line.count}"
    RUBY
    result = program!(code, interval: "100us", env: { "TIMES" => long(3_000, 100_000).to_s })
    assert_equal({ "globs" => "1", "lines" => "2000" }, result.figures)
  end
end
