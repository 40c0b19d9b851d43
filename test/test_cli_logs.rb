# frozen_string_literal: true

require_relative "test_helper"
require "support/cli_helper"
require "support/sample_ring"

# Which log is meant, and the commands that look at its fixed parts.
class CLILogsTest < Minitest::Test
  include CLIHelper

  RING_FIELDS = %w[path pid ppid parent_ring service argv state start end retained_ns ring_bytes].freeze
  STATUS_FIELDS = %w[schema pid state reason ruby ring ring_bytes retained_ns interval_ns effective_interval_ns ticks
                     late_ticks thread_samples threads lost symbols cost warnings].freeze

  def setup
    @dir = File.realpath(Dir.mktmpdir)
    @rings = File.join(@dir, "rings")
    Dir.mkdir(@rings, 0o700)
  end

  def teardown
    FileUtils.rm_rf(@dir)
  end

  # started: seconds after the first.
  def ring(pid, dir: @rings, started: 0, **options, &story)
    path = File.join(dir, "#{pid}-5000-#{format("%016x", pid)}.sdb")
    story ||= proc do
      code :main, "<main>", path: "/app/#{pid}.rb", line: 1
      thread :main, tid: pid, main: true
      at 0, main: running("main:2")
      finish 100
    end
    options = { pid: pid, service: "shop", argv: %w[ruby app.rb] }.merge(options)
    RingEncoder.write(path, start_realtime_ns: 1_764_460_800_000_000_000 + started * 1_000_000_000, **options, &story)
  end

  # In an environment in which no ring is found but where the test says.
  def nowhere(extra = {}, &block)
    Dir.mkdir(File.join(@dir, "cwd")) unless Dir.exist?(File.join(@dir, "cwd"))
    Dir.chdir(File.join(@dir, "cwd")) { with_env({ "SDB_DIR" => nil, "TMPDIR" => @dir }.merge(extra), &block) }
  end

  def pids(answer) = answer.json["rings"].map { |r| r["pid"] }

  def test_ls_lists_every_ring_with_the_documented_fields
    ring(11)
    ring(12, started: 5, parent_ring: "11-5000-000000000000000b.sdb")
    answer = sdb!("ls", @rings, "--json")
    assert_equal %w[schema rings], answer.json.keys
    answer.json["rings"].each { |entry| assert_equal RING_FIELDS, entry.keys }
    assert_equal [11, 12], pids(answer)
    entry = answer.json["rings"].last
    assert_equal ["shop", %w[ruby app.rb], "dead", 100_000_000],
                 entry.values_at("service", "argv", "state", "retained_ns")
    assert_match(/\A2025-11-30T00:00:05(\.0+)?Z\z/, entry["start"])
    assert_match(/^ +12 +dead +shop .*#{@rings}/, sdb!("ls", @rings).out)
  end

  def test_a_ring_whose_lock_is_held_is_live_and_a_closed_one_stopped
    File.open(ring(11)) do |file|
      file.flock(File::LOCK_EX)
      assert_equal "running", sdb!("ls", @rings, "--json").json["rings"].first["state"]
      assert_equal "running", sdb!("status", @rings, "--json").json["state"]
    end
    closed = ring(12, state: :closed)
    assert_equal "stopped", sdb!("status", closed, "--json").json["state"]
  end

  def test_status_has_the_documented_fields_and_what_was_lost
    path = ring(11, ruby: "3.4.5 +YJIT") do
      thread :main, tid: 11, main: true
      at 0, main: running
      finish 1800
      status state: :closed, reason: "layout not proven", lost_torn: 3, lost_gap_ns: 2_000_000, cpu_ns: 5_000_000,
             late_ticks: 9, codes: 7, codes_recycled: 2, rss_bytes: 1 << 20, effective_interval_ns: 4_000_000
    end
    document = sdb!("status", path, "--json").json
    assert_equal STATUS_FIELDS, document.keys.first(STATUS_FIELDS.size)
    assert_equal [1, 11, "layout not proven", "3.4.5 +YJIT", path, 1_000_000, 4_000_000, 9],
                 document.values_at("schema", "pid", "reason", "ruby", "ring", "interval_ns", "effective_interval_ns",
                                    "late_ticks")
    assert_equal %w[live seen], document["threads"].keys.first(2)
    assert_equal %w[torn torn_top gc unresolved queue_full ring gap_ns], document["lost"].keys.first(7)
    assert_equal [3, 2_000_000], document["lost"].values_at("torn", "gap_ns")
    assert_equal({ "count" => 7, "recycled" => 2 }, document["symbols"])
    assert_equal [5_000_000, 0, 1 << 20], document["cost"].values_at("cpu_ns", "gvl_ns", "rss_bytes")
    out = sdb!("status", path).out
    assert_match(/^pid 11 .*layout not proven/, out)
    assert_includes out, "4.00 ms now, raised from 1.00 ms"
    assert_includes out, "3 stacks that moved while they were read, 2.00 ms not observed"
  end

  def test_status_takes_the_pid_of_a_dead_process_and_prefers_a_running_one
    ring(11)
    ring(12, started: 5)
    nowhere("SDB_DIR" => @rings) do
      assert_equal 11, sdb!("status", "11", "--json").json["pid"]
      answer = sdb!("status", "--json")
      assert_equal 12, answer.json["pid"]
      assert_includes answer.err, "there is 1 more log"
      File.open(File.join(@rings, "11-5000-000000000000000b.sdb")) do |file|
        file.flock(File::LOCK_EX)
        assert_equal 11, sdb!("status", "--json").json["pid"]
      end
      assert_equal 2, sdb!("status", "11", "12", "--json").out.lines.size
    end
  end

  def test_without_a_ring_named_sdb_dir_then_tmp_sdb_then_the_users_directory_are_taken
    user = File.join(@dir, "sdb-#{Process.euid}")
    local = File.join(@dir, "cwd", "tmp", "sdb")
    [user, local].each { |dir| FileUtils.mkdir_p(dir, mode: 0o700) }
    ring(1, dir: user)
    nowhere { assert_equal [1], pids(sdb!("ls", "--json")) }
    ring(2, dir: local)
    nowhere { assert_equal [2], pids(sdb!("ls", "--json")) }
    ring(3)
    nowhere("SDB_DIR" => @rings) { assert_equal [3], pids(sdb!("ls", "--json")) }
  end

  def test_files_directories_and_latest_may_be_mixed_and_pid_narrows
    one = ring(11)
    other = File.join(@dir, "other")
    Dir.mkdir(other, 0o700)
    ring(12, dir: other, started: 5)
    assert_equal [11, 12], pids(sdb!("ls", other, one, "--json"))
    assert_equal [12], pids(sdb!("ls", other, one, "--pid", "12", "--json"))
    ring(13, started: 9)
    nowhere("SDB_DIR" => @rings) { assert_equal [13], pids(sdb!("ls", "latest", "--json")) }
    functions = sdb!("functions", other, one, "--json").json
    assert_equal 200_000_000, functions["total_ns"]
    assert_equal 100_000_000, sdb!("functions", other, one, "--pid", "12", "--json").json["total_ns"]
  end

  def test_no_ring_is_an_error_that_says_where_it_looked_and_what_to_do
    nowhere do
      [%w[ls], %w[status], %w[functions], %w[stacks 4242], ["tree", File.join(@dir, "nosuch.sdb")]].each do |words|
        answer = sdb(*words)
        assert_equal [1, ""], [answer.status, answer.out], words.join(" ")
        assert_operator answer.err.length, :>, 20, words.join(" ")
      end
      answer = sdb("functions")
      assert_includes answer.err, @dir
      assert_includes answer.err, "sdb record"
    end
  end

  def test_a_file_that_is_no_ring_is_named_and_the_others_are_still_read
    bad = File.join(@rings, "9-1-0000000000000009.sdb")
    File.write(bad, "no ring at all" * 1000)
    answer = sdb("functions", bad)
    assert_equal [1, ""], [answer.status, answer.out]
    assert_includes answer.err, bad
    ring(11)
    answer = sdb!("functions", @rings, "--json")
    assert_equal 100_000_000, answer.json["total_ns"]
    assert_includes answer.err, bad
  end

  def test_dump_saves_a_copy_that_reads_the_same
    path = ring(11)
    copy = File.join(@dir, "copy.sdb")
    answer = sdb!("dump", path, "-o", copy)
    assert_equal "#{copy}\n", answer.out
    assert FileUtils.identical?(path, copy)
    assert_equal 0o600, File.stat(copy).mode & 0o777
    assert_operator File.stat(copy).blocks * 512, :<, 1 << 20, "holes stay holes"
    assert_equal sdb!("functions", path, "--json").json, sdb!("functions", copy, "--json").json
    assert_equal [11, File.size(copy)], sdb!("dump", path, "-o", copy, "--json").json.values_at("pid", "bytes")
  end

  def test_dump_by_pid_names_the_file_after_service_pid_and_time
    ring(11, service: "my shop/x")
    nowhere("SDB_DIR" => @rings) do
      name = sdb!("dump", "11").out.chomp
      assert_match(/\Amy_shop_x-11-\d{8}-\d{6}\.sdbdump\z/, name)
      assert_equal [11], pids(sdb!("ls", name, "--json"))
      assert_empty Dir.glob("*.part")
    end
  end

  def test_hostile_names_cannot_drive_the_terminal
    path = ring(11, service: "a\e]0;x\a") do
      code :evil, "Foo#\e[2J\nbar", path: "/app/\r\e[31m.rb", line: 1
      thread :main, tid: 11, main: true, name: "\e[5m"
      at 0, main: running("evil:1")
      span 0..10, :main, id: "\e[1m", name: "<script>\e[0m"
      finish 100
    end
    %w[ls status functions tree threads stacks slow callers lines].each do |command|
      words = { "callers" => ["/Foo/"], "lines" => ["rb"] }.fetch(command, [])
      answer = sdb(command, *words, path)
      refute_match(/[\e\r\a]/, answer.out + answer.err, command)
    end
    assert_equal "Foo#\e[2J\nbar", sdb!("functions", path, "--json").json["functions"].first["name"]
  end

  # Only the end of a log is read for it, and that end may be all of it that a waiting thread is in.
  def test_stacks_know_since_when_a_thread_waits_that_waits_for_longer_than_is_read_first
    path = RingEncoder.write(File.join(@dir, "long.sdb"), pid: 11, chunks: 6) do
      code :main, "<main>", path: "/app/main.rb", line: 1
      code :read, "IO#read"
      code :work, "Foo#work", path: "/app/foo.rb", line: 10
      thread :main, tid: 11, main: true
      thread :worker, tid: 12
      at 0, main: running("main:2")
      at 1000, main: blocked("main:3 read")
      30.times { |n| at n * 1000, worker: running("work:#{12 + (n % 2)}") }
      [10_000, 20_000, 28_000].each { |ms| new_chunk ms }
      finish 30_000
    end
    stuck = sdb!("stacks", path, "--json").json["threads"].find { |thread| thread["tid"] == 11 }
    assert_equal ["blocked", 1_000_000_000], stuck.values_at("state", "since_ns")
  end
end
