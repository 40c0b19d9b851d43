# frozen_string_literal: true

require_relative "../test_helper"
require "json"
require "support/case_helper"
require "support/cli_helper"
require "support/sandbox_helper"

# C50: a process that becomes another program twice. What it was before has ended, and is not mixed into what it is.
class TestC50Exec < Minitest::Test
  include CaseHelper
  include CLIHelper
  include SandboxHelper

  BECOMES = <<~RUBY
    #{TOOLS}
    $stdout.sync = true
    life = ENV["LIFE"].to_i
    eval "def life_\#{life} = burn(0.05)"
    send("life_\#{life}")
    if life < 2
      ENV["LIFE"] = (life + 1).to_s
      exec(RbConfig.ruby, "-I#{LIB}", "-rsdb/auto", __FILE__)
    end
    puts "there"
    eval "def the_last_life = $stdin.gets"
    the_last_life
  RUBY

  def becoming(before = [])
    file = File.join(@dir, "becomes.rb")
    File.write(file, BECOMES)
    env = { "SDB_DIR" => @dir, "SDB" => nil, "SDB_RING" => "4M" }
    Open3.popen3(env, *before, RbConfig.ruby, "-I#{LIB}", "-rsdb/auto", file) do |input, out, err, waiter|
      assert_equal "there\n", out.gets, -> { err.read }
      sleep 0.2
      yield waiter.pid
      input.puts
      assert_predicate waiter.value, :success?, err.read
    end
  end

  { "in_a_table_of_its_own" => {}, "without_one" => { close_range: :eperm, unshare: :eperm } }.each do |name, denied|
    define_method(:"test_earlier_programs_of_the_process_have_ended_#{name}") do
      becoming(denied.empty? ? [] : denying(denied)) do |pid|
        rings = sdb!("ls", @dir, "--json").json["rings"]
        assert_equal [pid] * 3, rings.map { |ring| ring["pid"] }
        assert_equal %w[stopped stopped], rings.first(2).map { |ring| ring["state"] }
        assert_match(/running|parked/, rings.last["state"])
        [[pid.to_s, @dir], ["--pid", pid.to_s, @dir]].each do |words|
          threads = sdb!("stacks", "--json", *words).json["threads"]
          assert_equal ["Object#the_last_life"], threads.map { |t| t["frames"].map { |f| f["name"] }.grep(/life/).first }
        end
      end
      states = sdb!("ls", @dir, "--json").json["rings"].map { |ring| ring["state"] }
      assert_equal %w[stopped] * 3, states, "also when the process is gone"
    end
  end

  def test_what_becomes_a_program_without_a_log_has_ended
    file = File.join(@dir, "becomes.rb")
    File.write(file, "sleep 0.1; exec('sh', '-c', 'echo there; read x')")
    env = { "SDB_DIR" => @dir, "SDB" => nil, "SDB_RING" => "4M" }
    Open3.popen3(env, RbConfig.ruby, "-I#{LIB}", "-rsdb/auto", file) do |input, out, _, _|
      assert_equal "there\n", out.gets
      status = sdb!("status", @dir, "--json").json
      assert_equal ["stopped", "the process became another program"], status.values_at("state", "reason")
      input.puts
    end
  end
end
