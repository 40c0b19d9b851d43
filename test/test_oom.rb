# frozen_string_literal: true

require_relative "test_helper"
require "support/cli_helper"
require "support/dump_encoder"
require "sdb/oom/death"
require "sdb/report/oom_page"

# `sdb oom` over dumps whose contents are known, with the real reader.
class OomTest < Minitest::Test
  include CLIHelper

  START = 1_000_000_000_000
  BASE = 0x7f0000000000
  MS = 1_000_000
  M = DumpEncoder

  def setup
    @dir = Dir.mktmpdir
    @ring = RingEncoder.write("#{@dir}/4242-5000-aa.sdb", pid: 4242, service: "shop", chunks: 3) do
      code :main, "<main>", path: "/app/main.rb", line: 1, base: BASE, addresses: [0x1000, 0]
      code :old, "Old#gone", path: "/app/old.rb", line: 5, base: BASE + 0x10000, addresses: [0x2000, 0x2008]
      code :work, "Foo#work", path: "/app/foo.rb", line: 10, base: BASE + 0x10000, addresses: [0x3000, 0x3008]
      code :sleep, "Kernel#sleep", addresses: [0, 0x4008]
      thread :main, tid: 4242, main: true
      thread :worker, tid: 4243, name: "worker 1"
      at 0, main: running("main:3 work:12")
      at 0, worker: running("main:3")
      at 10, worker: blocked("main:3 sleep")
      span 5..nil, :worker, id: "r-1", name: "UsersController#index"
      memory 20, 50 << 20, usage: 60 << 20, limit: 64 << 20
      memory 90, 60 << 20, usage: 63 << 20, limit: 64 << 20
      pre_oom 90, 95, rss: 60 << 20
      finish 100
    end
    @dump = M.write("#{@dir}/shop-77-20260801T000000.000Z.sdbdump", ring: @ring, facts: facts, flags: { complete: 1, read_errors: 0 },
                                                                    threads: threads)
  end

  def teardown = FileUtils.rm_rf(@dir)

  def facts
    { cause: "oom", kill_source: "kernel_oom", service: "shop", pid: 77, killed_realtime_ns: 1_764_460_800_105_000_000,
      killed_monotonic_ns: START + 105 * MS, sender_pid: 12, sender_comm: "hog\e[2J", sender_uid: 3, anon_rss_bytes: 60 << 20,
      cgroup: "/sys/fs/cgroup/x", cgroup_limit_bytes: 64 << 20, cmdline: "ruby app.rb" }
  end

  def threads
    work = BASE + 0x10000
    [{ serial: 1, tid: 4242, state: 0, since: START + 1 * MS,
       frames: [[0, 0xdead, 0x4008, M::C_METHOD], [0x3000, work + 8 * 3, 0x3008, M::METHOD], [0x9999, 0, 0, M::METHOD],
                [0x1000, BASE + 8 * 3, 0, M::METHOD], [0, 0, 0, M::DUMMY]] },
     { serial: 2, tid: 4243, state: 2, since: START + 10 * MS, total: 9,
       frames: [[0x5555, 0, 0, M::C_BLOCK], [0x2000, work + 8, 0x2008, M::METHOD], [0x3000, work + 8 * 500, 0, M::METHOD]] },
     { serial: 3, tid: 4250, thread_flags: 1, frames: [] }]
  end

  def show(*words) = sdb!("oom", "show", *words, "--json").json

  def test_the_document_has_the_fields_of_the_contract
    document = show(@dump)
    assert_equal %w[schema path service pid at cause complete flags memory spans threads], document.keys.first(11)
    assert_equal [1, @dump, "shop", 4242, "oom", true], document.values_at("schema", "path", "service", "pid", "cause", "complete")
    assert_equal "2025-11-30T00:00:00.105000Z", document["at"]
    assert_equal({ "at_ns" => 20 * MS, "rss_bytes" => 50 << 20, "cgroup_bytes" => 60 << 20, "limit_bytes" => 64 << 20 },
                 document["memory"].first.slice("at_ns", "rss_bytes", "cgroup_bytes", "limit_bytes"))
    assert_equal({ "complete" => 1, "read_errors" => 0, "pre_oom_present" => 1 }, document["flags"])
    assert_equal [["r-1", "UsersController#index", true]], document["spans"].map { |s| s.values_at("id", "name", "open") }
  end

  def test_frames_are_named_by_where_code_lay_root_first
    main, worker = show(@dump)["threads"]
    assert_equal [["<main>", "/app/main.rb", 3], ["(not yet named)", "", 0], ["Foo#work", "/app/foo.rb", 12], ["Kernel#sleep", "", 0]],
                 main["frames"].map { |f| f.values_at("name", "path", "line") }
    assert_equal [4242, "running", 1 * MS], main.values_at("tid", "state", "since_ns")
    assert_equal [["(6 older frames were not copied)", 0], ["Foo#work", 0], ["Old#gone", 5]], worker["frames"].map { |f| f.values_at("name", "line") }
    assert_equal ["worker 1", "blocked", "UsersController#index"], worker.values_at("name", "state", "span")
  end

  def test_the_recorders_own_thread_is_not_shown
    assert_equal([4242, 4243], show(@dump)["threads"].map { |t| t["tid"] })
  end

  def test_the_text_tells_how_it_died_what_was_in_flight_and_what_ran
    out = sdb!("oom", "show", @dump).out
    assert_match(/^shop, pid 4242 was killed by the kernel's OOM killer at/, out)
    assert_match(/the allocation that failed was made by hog\\e\[2J \(pid 12, uid 3\)/, out)
    assert_match(/^ *15\.0 ms +60\.0 MiB +63\.0 MiB +64\.0 MiB .* 98 %/, out)
    assert_match(/95\.0 ms +request +r-1 +4243 +UsersController#index/, out)
    assert_match(/thread 4243  worker 1  blocked  for 95\.0 ms  in UsersController#index\n +Old#gone  .app.old.rb:5\n/, out)
  end

  def test_a_ring_alone_tells_the_same_but_the_kill
    document = show(@ring)
    assert_equal ["unknown", false, "shop", 4242], document.values_at("cause", "complete", "service", "pid")
    assert_equal(["Kernel#sleep"], document["threads"].select { |t| t["tid"] == 4243 }.map { |t| t["frames"].last["name"] })
    out = sdb!("oom", "show", @ring).out
    assert_match(/vanished: killed or crashed/, out)
    assert_match(/the OOM killer is likely/, out)
    assert_match(/when last sampled/, out)
  end

  def test_list_has_each_death_once_and_the_default_place_from_the_environment
    listed = sdb!("oom", "list", @dir, "--json").json["dumps"]
    assert_equal [%w[path service pid at cause complete], [@dump]], [listed.first.keys, listed.map { |d| d["path"] }]
    File.delete(@dump)
    assert_equal([@ring], sdb!("oom", "list", @dir, "--json").json["dumps"].map { |d| d["path"] })
    with_env("SDB_DUMPS" => @dir, "SDB_DIR" => @dir) do
      assert_match(/unknown +shop +4242 +log only/, sdb!("oom", "list").out)
      assert_equal @ring, show("latest")["path"]
      assert_equal @ring, show("4242")["path"]
    end
  end

  def test_a_dump_is_a_log_for_every_analysing_command
    names = sdb!("functions", @dump, "--json").json["functions"].map { |f| f["name"] }
    assert_includes names, "Foo#work"
  end

  def test_the_page_holds_the_words_and_the_graph_and_no_foreign_markup
    M.write(@dump, ring: @ring, facts: facts.merge(cmdline: "<script>alert(1)</script>"), threads: threads)
    page = "#{@dir}/x.html"
    sdb!("oom", "show", @dump, "-o", page)
    html = File.read(page)
    assert_includes html, "killed by the kernel&#39;s OOM killer"
    assert_includes html, "Old#gone"
    assert_includes html, "UsersController#index"
    refute_includes html, "<script>alert"
    assert_includes html, 'id="graph"'
  end

  def test_damage_is_said_and_the_rest_is_still_told
    { "cut off" => ->(b) { b[0, 1000] }, "damaged header" => ->(b) { b.tap { b.setbyte(70, 99) } } }.each do |words, harm|
      File.binwrite("#{@dir}/bad.sdbdump", harm.call(File.binread(@dump)))
      answer = sdb("oom", "show", "#{@dir}/bad.sdbdump")
      assert_equal 1, answer.status
      assert_match(/#{words}/, answer.err)
    end
    M.write("#{@dir}/newer.sdbdump", ring: @ring, major: 2)
    assert_match(/newer format/, sdb("oom", "show", "#{@dir}/newer.sdbdump").err)
    bytes = File.binread(@dump)
    bytes.setbyte(4096 + 130, bytes.getbyte(4096 + 130) ^ 1)
    File.binwrite(@dump, bytes)
    answer = sdb!("oom", "show", @dump)
    assert_match(/section 2 is damaged/, answer.err)
    assert_match(/killed by the kernel's OOM killer/, answer.out)
    assert_match(/when last sampled/, answer.out)
  end

  def test_a_dump_without_a_readable_ring_still_tells_the_kill
    File.binwrite(@ring, "junk" * 1000)
    M.write(@dump, ring: @ring, facts: facts, threads: threads)
    answer = sdb!("oom", "show", @dump)
    assert_match(/shop, pid 77 was killed by the kernel's OOM killer/, answer.out)
    assert_match(/ring in it cannot be read/, answer.err)
  end

  def test_numbers_of_a_hostile_process_are_numbers_and_nothing_else
    most = (1 << 64) - 1
    wild = [{ serial: 1, tid: most, state: most, since: most, span: most, thread_flags: most - 1, slot: 0, frames: [[most] * 4] },
            { serial: 2, tid: 0, state: most, since: 0, total: most, slot: 0, frames: [[1, most - 8, most, M::METHOD]] }]
    M.write(@dump, ring: @ring, facts: facts.merge(service: "\xff\0x", killed_realtime_ns: most, killed_monotonic_ns: 0), threads: wild)
    document = show(@dump)
    assert_equal %w[unknown unknown], document["threads"].map { |t| t["state"] }
    assert_equal 0, sdb("oom", "show", @dump).status
  end

  def test_wrong_use_is_said
    assert_equal [2, 2, 2], [sdb("oom").status, sdb("oom", "lst").status, sdb("oom", "show").status]
    assert_match(/Did you mean list/, sdb("oom", "lst").err)
    assert_equal 1, sdb("oom", "show", "#{@dir}/none.sdbdump").status
  end
end
