# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"
require "support/cli_helper"

# A process that SIGKILL ends at each point at which its log is half of something: while the file is made, while
# blocks, names, chunks and state are written, while it is closed.
class TestSigkillAtTestPoints < Minitest::Test
  include CaseHelper
  include CLIHelper

  # Tells on standard output what it marked in its log and when: the truth that survives it.
  PROGRAM = <<~RUBY
    #{TOOLS}
    $stdout.sync = true
    finish = now + 4
    number = 0
    filler = "x" * 400
    while now < finish
      number += 1
      Sdb.mark("\#{number} \#{filler}")
      puts "\#{number} \#{now}"
      burn(0.0002)
      eval("def made_\#{number} = burn(0.002)\nmade_\#{number}") if number % 100 == 0 # names to write
      break if number == ENV["STOP_AFTER"].to_i
    end
    Sdb.stop
    sleep
  RUBY

  # point => how often it is passed before the kill: in the midst of a recording, with whole chunks behind.
  RUNNING = { "before_block_write" => 60, "after_block_write" => 60, "before_chunk_header" => 2, "after_chunk_header" => 2,
              "before_state_write" => 2, "before_symbol_write" => 5, "after_symbol_write" => 5 }.freeze
  LOST_MS = 5 + 1 # what is not yet written, and the tick that is under way

  RUNNING.each do |point, passes|
    define_method("test_killed_#{point}_what_was_flushed_is_there_and_at_most_5_ms_are_lost") do
      # the scanner of a busy machine may come late to its own death, again and again: that is no loss of what it had
      lost = []
      10.times do
        lost << lost_ms(killed("#{point}:#{passes}"))
        break if lost.last <= LOST_MS
      end
      assert_operator lost.min, :<=, LOST_MS, lost.inspect
    end
  end

  def test_killed_while_it_closes_nothing_is_lost
    result = killed("before_close:0", "STOP_AFTER" => "300")
    assert_equal (1..300).to_a, marked(profile_of(result, state: "stopped"))
  end

  def test_killed_while_the_file_is_made_the_log_says_so_or_is_not_there
    said = %w[before_header after_header_creating before_live].to_h do |point|
      result = killed("#{point}:0")
      answer = sdb("status", Dir[File.join(@dir, "#{result.pid}-*.sdb")].first)
      [point, answer.out + answer.err]
    end
    assert_match(/not a ring file of sdb/, said["before_header"])
    said.values.last(2).each { |text| assert_match(/\Apid \d+  dead$/, text) }
    # and the next process is not kept from recording there
    assert_equal 1, log_of(program!("sleep 0.05")).rings.size
    assert_equal %w[dead dead stopped], sdb!("ls", @dir, "--json").json["rings"].map { |ring| ring["state"] }.sort
  end

  private

  # A program that died at the point.
  def killed(point, env = {})
    result = program(PROGRAM, ring: "16M", env: env.merge("SDB_TESTPOINT" => point))
    assert_equal [:signal, Signal.list.fetch("KILL")], result.ending, "#{point}: #{result.err}"
    result
  end

  def profile_of(result, state: "dead")
    profile = log_of(result)
    assert_empty profile.warnings.grep(/damaged|corrupt/)
    assert_equal state, sdb!("status", profile.rings.first.path, "--json").json["state"]
    profile
  end

  def marked(profile) = profile.marks.map { |mark| mark.text.to_i }

  # Time from the last mark in the log to the last that the program told of.
  def lost_ms(result)
    told = result.out.lines.to_h { |line| line.split.then { |number, at| [number.to_i, at.to_f] } }
    found = marked(profile_of(result))
    refute_empty found
    assert_equal (found.first..found.last).to_a, found, "marks are missing in between"
    (told.fetch(told.keys.max) - told.fetch([found.last, told.keys.max].min)) * 1000
  end
end
