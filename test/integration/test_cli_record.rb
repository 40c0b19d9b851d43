# frozen_string_literal: true

require_relative "../test_helper"
require "fileutils"
require "open3"
require "support/cli_helper"

# sdb record and the commands that look at a process, with the real recorder.
class CLIRecordIntegrationTest < Minitest::Test
  include CLIHelper

  ROOT = File.expand_path("../..", __dir__)

  PROGRAM = <<~RUBY
    def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
    def busy(seconds)
      till = cpu + seconds
      nil while cpu < till
    end
    def work = busy(0.3)
    def rest = sleep(0.2)
    work
    start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    rest
    rested = Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
    File.write("\#{__FILE__}.rested", (rested * 1000).to_s)
  RUBY

  def setup
    @dir = File.realpath(Dir.mktmpdir("sdb übung "))
    File.write(program, PROGRAM)
  end

  def teardown
    FileUtils.rm_rf(@dir)
  end

  def program = File.join(@dir, "program.rb")

  def record(*words, root: ROOT, env: {}, chdir: @dir)
    Open3.capture3({ "TMPDIR" => @dir }.merge(env), RbConfig.ruby, File.join(root, "exe/sdb"), "record", *words, chdir: chdir)
  end

  # name => [self, total] in ms
  def functions(*words)
    sdb!("functions", *words, "--json").json["functions"].to_h do |f|
      [f["name"], [f["self_ns"] / 1e6, f["total_ns"] / 1e6]]
    end
  end

  def assert_times_of_the_program(log)
    times = functions("--thread", "main", log)
    assert_in_delta Float(File.read("#{program}.rested")), times.fetch("Object#rest")[1], 20
    cpu = functions("--thread", "main", "--metric", "cpu", log)
    assert_in_delta 300, cpu.fetch("Object#work")[1], 30
  end

  def test_it_says_where_the_time_went_and_the_log_tells_the_same
    log = File.join(@dir, "a log.sdb")
    out, err, status = record("-o", log, "--", RbConfig.ruby, program)
    assert_equal ["", 0], [out, status.exitstatus], err
    assert_match(/Object#(busy|rest|work)/, err)
    assert_times_of_the_program(log)
    assert_equal "stopped", sdb!("status", log, "--json").json["state"]
  end

  def test_a_gem_in_a_directory_with_a_space_and_umlauts_works
    FileUtils.cp_r(%w[lib exe].map { |name| File.join(ROOT, name) }, @dir)
    log = File.join(@dir, "x.sdb")
    _, err, status = record("-o", log, "--", RbConfig.ruby, program, root: @dir)
    assert_equal 0, status.exitstatus, err
    assert_times_of_the_program(log)
  end

  def test_it_reaches_an_app_that_runs_under_bundler_without_the_gem_in_its_bundle
    File.write(File.join(@dir, "Gemfile"), "")
    log = File.join(@dir, "x.sdb")
    _, err, status = record("-o", log, "--", RbConfig.ruby, "-rbundler/setup", program,
                            env: { "BUNDLE_GEMFILE" => File.join(@dir, "Gemfile") })
    assert_equal 0, status.exitstatus, err
    assert_times_of_the_program(log)
  end

  def test_children_have_logs_of_their_own_and_the_status_is_the_parents
    File.write(program, "#{PROGRAM}\npid = fork { work; exit!(5) }\nexit(Process.wait2(pid).last.exitstatus)\n")
    log = File.join(@dir, "x.sdb")
    _, err, status = record("-o", log, "--", RbConfig.ruby, program)
    assert_equal 5, status.exitstatus, err
    child, = Dir.glob(File.join(@dir, "x.*.sdb"))
    assert_in_delta 300, functions("--metric", "cpu", child).fetch("Object#work")[1], 30
    entry = sdb!("ls", child, "--json").json["rings"].first
    parent = sdb!("ls", log, "--json").json["rings"].first
    assert_equal parent["pid"], entry["ppid"]
    refute_nil entry["parent_ring"]
  end

  def test_a_killed_command_leaves_its_log
    # no more than the last 5 ms are lost; how long it slept is told by the first of them
    File.write(program, "#{PROGRAM}\nbusy(0.02)\nProcess.kill(:KILL, Process.pid)\nsleep\n")
    log = File.join(@dir, "x.sdb")
    _, err, status = record("-o", log, "--", RbConfig.ruby, program)
    assert_equal 128 + 9, status.exitstatus, err
    assert_times_of_the_program(log)
    assert_equal "dead", sdb!("status", log, "--json").json["state"]
  end

  def test_a_live_process_is_seen_by_status_stacks_top_and_dump
    rings = File.join(@dir, "rings")
    File.write(program, "$stdout.sync = true\ndef forever = loop { 10.times { Math.sqrt(2) } }\n" \
                        "Thread.new { sleep }.name = 'sleeper'\nputs :ready\nforever\n")
    env = { "RUBYLIB" => File.join(ROOT, "lib"), "SDB_DIR" => rings }
    Open3.popen2(env, RbConfig.ruby, "-rsdb/auto", program) do |_, out, process|
      assert_equal "ready\n", out.gets
      with_env("SDB_DIR" => rings) { assert_seen_live(process.pid) }
    ensure
      Process.kill(:KILL, process.pid)
    end
    with_env("SDB_DIR" => rings) { assert_equal "dead", sdb!("status", "--json").json["state"] }
  end

  def assert_seen_live(pid)
    threads = nil
    100.times do
      sleep 0.05
      threads = sdb!("stacks", pid, "--json").json["threads"].to_h { |t| [t["name"], t] }
      break if threads["sleeper"] && threads["main"]["frames"].any? { |f| f["name"] == "Object#forever" }
    end
    assert_equal %w[Object#forever], threads["main"]["frames"].map { |f| f["name"] } & %w[Object#forever]
    assert_equal "blocked", threads["sleeper"]["state"]
    assert_equal "running", sdb!("status", pid, "--json").json["state"]
    assert_includes sdb!("top", pid, "--json").json["functions"].map { |f| f["name"] }, "Object#forever"
    assert_path_exists sdb!("dump", pid, "-o", File.join(@dir, "d.sdbdump")).out.chomp
    assert functions(File.join(@dir, "d.sdbdump")).key?("Object#forever")
  end
end
