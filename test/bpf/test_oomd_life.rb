# frozen_string_literal: true

require "test_helper"
require "bpf/support"
require "sdb/oom/death"

# The daemon itself: restarts, many kills, a full disk, its budget, what it runs, rings it finds.
class TestOomdLife < Minitest::Test
  include BlackBox::Setup

  KILLS = Integer(ENV.fetch("SDB_OOM_KILLS", "1000"))

  def test_a_daemon_that_was_killed_and_restarted_knows_the_processes_again
    process = victim("repeat", threads: 2)
    daemon.stop(:KILL)
    daemon.start
    daemon.wait_for(process.pid)
    process.kill
    process.wait
    assert_right_frames(daemon.dump_of(process.pid), threads: 2)
  end

  def test_a_process_lives_on_and_leaves_its_ring_when_no_daemon_is_there
    daemon.stop
    @daemon = nil
    process = victim("sleep", name: @base, watched: false)
    process.kill
    process.wait
    ring = Dir["#{@rings}/#{process.pid}-*.sdb"]
    assert_equal 1, ring.size
    assert_includes File.binread(ring.first), "flushed"
  end

  def test_many_kills_leak_no_slot_no_descriptor_and_no_memory
    daemon("--keep-files", "20")
    warm_up = Array.new(4) { kill_some(8) }.flatten
    descriptors = daemon.descriptors
    rss = daemon.rss_kb
    (KILLS / 8).times { warm_up += kill_some(8) }
    sleep 0.2 while written(warm_up.size) && daemon_busy?

    log = File.read(daemon.log)
    assert_equal [], warm_up.reject { |pid| log.match?(/pid #{pid},.*complete, \d+ ms/) }, "each has its line"
    assert_equal [], daemon.dumps.map { |path| Sdb::Oom::Dump.read(path) }.reject(&:complete?).map(&:flags)
    assert_equal 0, log.scan("not complete").size
    assert_operator daemon.descriptors, :<=, descriptors
    assert_operator daemon.rss_kb, :<, rss + 4096
    assert_operator daemon.dumps.size, :<=, 20
    assert_equal 16, captured_at_once(16), "all slots are free again"
  end

  def test_many_kills_by_the_oom_killer_are_all_confirmed
    daemon("--keep-files", "8")
    group = cgroup(16 << 20)
    descriptors = nil
    pids = Array.new([KILLS / 10, 1].max) do
      process = victim("hog", threads: 2, frames: 10, cgroup: group)
      process.go
      process.wait
      @children.delete(process)
      dump = daemon.dump_of(process.pid)
      assert_equal ["oom", 1, 1], [dump.cause, dump.flags[:oom_confirmed], dump.flags[:complete]], dump.flags
      descriptors ||= daemon.descriptors
      process.pid
    end
    assert_equal pids.size, File.read(daemon.log).scan("killed by the OOM killer").size
    assert_operator daemon.descriptors, :<=, descriptors
  end

  def test_more_kills_at_once_than_slots_are_all_told_of_and_the_rest_flagged
    count = 40
    pids = Array.new(count) { victim("sleep", threads: 2) }.each(&:kill).each(&:wait).map(&:pid)
    dumps = pids.map { |pid| daemon.dump_of(pid) }
    whole, overflown = dumps.partition { |dump| dump.flags[:slot_overflow].zero? }
    assert_operator whole.size, :>=, 16
    whole.each { |dump| assert_right_frames(dump, threads: 2) }
    overflown.each { |dump| assert_equal [[], 0], [dump.threads, dump.flags[:complete]] }
  end

  def test_a_full_disk_is_said_and_older_dumps_make_room
    FileUtils.mkdir_p("#{@base}/dumps", mode: 0o700)
    assert system("mount", "-t", "tmpfs", "-o", "size=160k,mode=700", "sdb-test", "#{@base}/dumps")
    pids = Array.new(12) { kill_some(1).first.tap { sleep 0.3 } }
    log = File.read(daemon.log)
    assert_match(/removed \S+ of uid 0, \d+ bytes: the disk is full/, log)
    assert daemon.dump_of(pids.last), "the newest is kept"
    assert_operator daemon.dumps.size, :<, 12
    assert_empty Dir.children("#{@base}/dumps").grep(/unfinished/)

    daemon.dumps.each { |path| File.delete(path) }
    File.binwrite("#{@base}/dumps/ballast", "x" * (145 << 10))
    lost = kill_some(1).first
    sleep 0.1 until (log = File.read(daemon.log)).match?(/no dump of pid #{lost}/)
    assert_match(/no room on the disk of .*, needs \d+ bytes/, log)
  ensure
    daemon.stop
    @daemon = nil
    system("umount", "#{@base}/dumps")
  end

  def test_the_budget_of_files_is_kept_the_newest_stay
    daemon("--keep-files", "3")
    pids = Array.new(6) { kill_some(1).first.tap { |pid| daemon.dump_of(pid) } }
    assert_equal pids.last(3).sort, daemon.dumps.map { |path| path[/-(\d+)-\d{8}T/, 1].to_i }.sort
  end

  def test_exec_runs_after_each_dump_with_what_is_known
    daemon("--exec", "echo \"$1 $SDB_SERVICE $SDB_PID $SDB_CAUSE $(cat /proc/self/oom_score_adj)\" > #{@base}/told")
    pid = kill_some(1).first
    dump = daemon.dump_of(pid)
    100.times { File.size?("#{@base}/told") ? break : sleep(0.05) }
    assert_equal "#{dump.path} victim #{pid} sigkill 0\n", File.read("#{@base}/told")
  end

  def test_a_ring_found_in_a_directory_is_kept_without_stacks
    process = victim("sleep", name: "-", watched: false)
    daemon("--rings", @rings)
    daemon.wait_for(process.pid)
    process.kill
    process.wait
    dump = daemon.dump_of(process.pid)
    assert_equal [1, [], "victim", "sigkill"], [dump.flags[:unarmed], dump.threads, dump["service"], dump.cause]
    assert_includes File.binread(dump.path)[dump.ring_range], "flushed"
  end

  def test_a_ring_that_left_the_page_cache_is_read_back_from_the_disk
    process = victim("sleep", watched: false, name: daemon.name)
    daemon.wait_for(process.pid)
    path = Dir["#{@rings}/#{process.pid}-*.sdb"].first
    skip "the rings are on tmpfs, which has no disk" if `stat -f -c %T #{path}`.include?("tmpfs")
    # all but the window that the process keeps in memory; pages on their way to the disk stay at the first word
    100.times do
      File.open(path) { |file| file.fsync && file.advise(:dontneed) }
      break if in_cache(path) <= RESIDENT_BYTES

      sleep 0.02
    end
    assert_operator in_cache(path), :<=, RESIDENT_BYTES, "the kernel keeps it in its cache"
    File.chown(4242, nil, path) # only its owner is told what is in the cache
    process.kill
    process.wait
    dump = daemon.dump_of(process.pid)
    assert_equal 4096, dump.flags[:ring_evicted], "the identity; all else is resident or was never written"
    assert_includes File.binread(dump.path)[dump.ring_range], "flushed"
  end

  # As in a container: other numbers, other mounts, a ring that no path of ours leads to.
  def test_a_process_in_namespaces_of_its_own_is_captured_and_known_by_its_ring
    inside = "mount -t tmpfs tmpfs #{@rings} && exec #{BlackBox::VICTIM} sleep 2 10 #{daemon.name} #{@rings}"
    skip "no pid namespace can be made" unless system("unshare", "-p", "-m", "-f", "--mount-proc", "true", err: File::NULL)
    outer = child("unshare", "-p", "-m", "-f", "--kill-child", "--mount-proc", "sh", "-c", inside)
    pid = File.read("/proc/#{outer.pid}/task/#{outer.pid}/children").to_i
    daemon.wait_for(pid)
    assert_empty Dir.children(@rings)
    Process.kill(:KILL, pid)
    outer.wait
    dump = daemon.dump_of(pid)
    assert_right_frames(dump, threads: 2, frames: 10)
    assert_equal [1, pid], [Sdb::Oom::Death.read(dump.path).pid, dump.number(:pid)]
  end

  def test_a_ring_in_a_directory_of_another_namespace_is_found_by_its_process
    inside = "exec #{BlackBox::VICTIM} sleep 2 10 - #{@rings}"
    skip "no pid namespace can be made" unless system("unshare", "-p", "-m", "-f", "--mount-proc", "true", err: File::NULL)
    outer = child("unshare", "-p", "-m", "-f", "--kill-child", "--mount-proc", "sh", "-c", inside)
    pid = File.read("/proc/#{outer.pid}/task/#{outer.pid}/children").to_i
    daemon("--rings", @rings).wait_for(pid)
    Process.kill(:KILL, pid)
    outer.wait
    assert_equal 1, daemon.dump_of(pid).flags[:unarmed]
  end

  def test_a_second_daemon_with_the_same_directory_is_refused
    daemon
    _, err, status = Open3.capture3(BlackBox::DAEMON, "--dir", daemon.dir, "--name", "other")
    assert_equal 1, status.exitstatus
    assert_match(/another sdb-oomd runs/, err)
  end

  def test_a_process_that_becomes_another_program_is_forgotten
    process = victim("exec", threads: 1)
    process.go
    100.times { File.read("/proc/#{process.pid}/comm") == "sleep\n" ? break : sleep(0.02) }
    sleep 0.1 # the name changes in the middle of exec
    process.kill
    process.wait
    kill_some(1).each { |other| daemon.dump_of(other) }
    assert_empty daemon.dumps.grep(/-#{process.pid}-/), File.read(daemon.log)
  end

  private

  RESIDENT_BYTES = 65 * 4096

  def in_cache(path) = Integer(`fincore --bytes --noheadings --output RES #{path}`)

  def kill_some(count)
    Array.new(count) { victim("sleep", threads: 2, frames: 10) }.each(&:kill).each(&:wait).map do |process|
      @children.delete(process)
      process.pid
    end
  end

  def captured_at_once(count)
    pids = kill_some(count)
    pids.count { |pid| daemon.dump_of(pid).flags[:slot_overflow].zero? }
  end

  def written(count) = File.read(daemon.log).scan(".sdbdump:").size < count

  # Gives up when nothing was written for five seconds.
  def daemon_busy?
    size = File.size(daemon.log)
    if size != @last_size
      @last_size = size
      @since = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
    Process.clock_gettime(Process::CLOCK_MONOTONIC) - @since < 5
  end
end
