# frozen_string_literal: true

require "test_helper"
require "bpf/support"

# Whole attacks by a second user (test/bpf/attacker.c): on the daemon itself, on other users' dumps, on the time they take.
# Users 41000 and up need no entry in /etc/passwd.
class TestOomdAttacks < Minitest::Test
  include BlackBox::Setup

  MALLORY = 41_000
  ALICE = 42_000
  SOON = 2.0
  FAT = (4 << 20) + (12 << 10) # a dump with a ring of 4 MiB, on the disk

  def setup
    super
    File.chmod(0o711, @base)
    @work = "#{@base}/work" # where anybody may write
    Dir.mkdir(@work)
    Dir.mkdir("#{@work}/empty")
    File.chmod(0o1777, @work)
    raise "no node of /dev/fuse can be made" unless system("mknod", "-m", "666", "#{@work}/fuse", "c", "10", "229")

    daemon
  end

  def test_a_ring_on_a_file_system_that_never_answers_costs_its_user_alone
    before = kept(MALLORY)
    attack("fuse-open")
    wait_for_log(/the keeper of uid #{MALLORY} does not answer, another takes over/)
    assert_dumped(before, "the ring that was held already")
    assert_dumped(kept(MALLORY), "a process of the same user that comes later")
    assert_all_goes_on
  end

  def test_an_overlay_over_such_a_file_system_costs_its_user_alone
    attack("overlay")
    wait_for_log(/the keeper of uid #{MALLORY} does not answer, another takes over/)
    assert_dumped(kept(MALLORY), "a process of the same user that comes later")
    assert_all_goes_on
  end

  def test_who_has_three_keepers_hanging_gets_no_more_and_the_others_do
    4.times do |i|
      attack("overlay")
      wait_for_log(/(takes for ever.*){#{[i + 1, 3].min}}/m)
    end
    sleep 2.5
    assert_equal 3, log.scan("does not answer").size
    assert_all_goes_on
  end

  def test_sockets_and_locks_of_others_are_never_waited_for
    %w[linger epoll].each { |mode| wait_for_log(/the ring of pid #{attack(mode).pid}, uid #{MALLORY} is not kept/) }
    assert_all_goes_on
    assert_empty sockets, "what has no socket cannot be sent a descriptor"
  end

  def test_nobody_below_root_can_stop_a_process_of_the_daemon
    attacker = attack("stop", daemon.pid)
    processes = Array.new(3) { kept(MALLORY) }
    processes.each { |process| assert_dumped(process, "a process of the user who tries") }
    Process.wait(attacker.pid)
    assert_equal [], attacker.said
  end

  def test_an_allocated_and_empty_file_takes_no_room_from_anybody
    restart("--keep-bytes", "8M", "--keep-others", "16M")
    mine = Array.new(2) { dump_path(kept(0)) }
    others = Array.new(2) { dump_path(kept(ALICE)) }
    attack("shared", 512)
    wait_for_log(/(evil-\d+-\S+sdbdump: evil.*){3}/m)
    assert_equal [], (mine + others).reject { |path| File.exist?(path) }
    refute_match(/removed/, log)
  end

  def test_a_user_over_his_budget_loses_his_own_dumps_and_the_log_names_each
    restart("--keep-bytes", "10M", "--keep-others", "30M")
    mine = dump_path(kept(0))
    others = dump_path(kept(ALICE))
    4.times { attack("fat", 4) }
    wait_for_log(/(evil-\d+-\S+sdbdump: evil.*){4}/m)
    assert_equal [mine, others].sort, daemon.dumps.grep_v(/evil/)
    assert_equal 2, daemon.dumps.grep(/evil/).size
    assert_equal 2, log.scan(/removed evil-\d+-\S+ of uid #{MALLORY}, \d+ bytes: its user has newer ones/).size
    attack("fat", 12)
    wait_for_log(/no dump of pid \d+ \(evil\): its ring is larger than what may be kept of its user/)
  end

  def test_users_who_fill_the_budget_of_all_leave_each_other_their_last_dump
    theirs = Array.new(2) { dump_path(kept(ALICE)) }
    one = File.stat(theirs.first).blocks * 512
    restart("--keep-bytes", "10M", "--keep-others", (3 * FAT + one + one / 2).to_s) # and one of the two
    3.times { |i| attack("fat", 4, user: MALLORY + i) }
    wait_for_log(/(evil-\d+-\S+sdbdump: evil.*){3}/m)
    assert_equal [theirs.last], daemon.dumps & theirs, "the oldest of who has two goes first"
    attack("fat", 4, user: MALLORY + 3)
    wait_for_log(/no dump of pid \d+ \(evil\): no room in the budget of uid #{MALLORY + 3}/)
    assert_path_exists theirs.last
  end

  def test_writers_have_two_descriptors_and_keepers_their_pipes_and_rings
    process = kept(ALICE)
    keeper = daemon.children.find { |pid| cmdline(pid) == ["sdb-oomd", "--keep", ALICE.to_s] }
    assert_equal %w[0 1 2], Dir.children("/proc/#{keeper}/fd").sort.first(3)
    links = Dir.children("/proc/#{keeper}/fd").map { |fd| File.readlink("/proc/#{keeper}/fd/#{fd}") }
    assert_equal 4, links.size, links
    assert_equal 2, links.grep(/pipe:/).size
    assert_equal 1, links.grep(%r{/rings-#{ALICE}/#{process.pid}-}).size
    status = File.read("/proc/#{keeper}/status")
    assert_equal %w[0000000000080000 0000000000080000], status.scan(/^Cap(?:Prm|Eff):\s+(\h+)/).flatten, "CAP_SYS_PTRACE"
    assert_match(/^NoNewPrivs:\s+1\nSeccomp:\s+2/, status)
    assert_match(/^Uid:\s+0\s+0\s+0\s+#{ALICE}$/, status)

    assert_equal ["1", "0000000000000000", MALLORY.to_s], look_at_writer
  end

  def test_under_a_flood_of_a_hundred_users_everybodys_dumps_appear_soon_and_roots_are_whole
    flood = Array.new(100) { |i| attack("flood", 3, user: MALLORY + i) }
    sleep 1
    mine = Array.new(8) { kept(0) }
    hers = kept(ALICE)
    seconds = [*mine, hers].map do |process|
      began = now
      process.kill
      process.wait
      dump = Sdb::Oom::Dump.read(soon(process.pid))
      assert_equal 1, dump.flags[:complete], dump.flags if process != hers
      assert_includes File.binread(dump.path)[dump.ring_range], "flushed"
      now - began
    end
    assert_operator seconds.max, :<, SOON, seconds.inspect
    assert log.match?(/registrations were refused: too many of one user/)
    refute log.match?(/lines of this log were lost/)
  ensure
    flood&.each { |process| process.kill(:TERM) }
    flood&.each(&:wait)
    @children -= flood if flood
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def log = File.read(daemon.log)

  def wait_for_log(pattern)
    200.times { log.match?(pattern) ? break : sleep(0.05) }
    assert_match(pattern, log)
  end

  def restart(*options)
    @daemon.stop
    @daemon = nil
    daemon(*options)
  end

  def attack(mode, number = 0, user: MALLORY)
    Dir.mkdir("#{@work}/mount-#{user}") && File.chown(user, user, "#{@work}/mount-#{user}") unless File.exist?("#{@work}/mount-#{user}")
    child(BlackBox::ATTACKER, mode, user, daemon.name, @work, number)
  end

  # A process of that user whose ring the daemon holds.
  def kept(user)
    rings = "#{@base}/rings-#{user}"
    Dir.mkdir(rings, 0o700) && File.chown(user, user, rings) unless File.exist?(rings)
    process = child("setpriv", "--reuid", user, "--regid", user, "--clear-groups", BlackBox::VICTIM, "sleep", 2, 10, daemon.name, rings)
    daemon.wait_for(process.pid)
    process
  end

  # Without the log, which is long then.
  def soon(pid)
    path = nil
    500.times { (path = daemon.dumps.find { |name| name.include?("-#{pid}-") }) ? break : sleep(0.01) }
    path || flunk("no dump of #{pid}, the log has #{log.lines.grep(/\b#{pid}\b/)}")
  end

  def dump_path(process)
    process.kill
    process.wait
    daemon.dump_of(process.pid).path
  end

  def assert_dumped(process, whose)
    began = now
    dump = Sdb::Oom::Dump.read(dump_path(process))
    assert_operator now - began, :<, SOON, whose
    assert_right_frames(dump, threads: 2, frames: 10)
    assert_equal 0, dump.flags[:not_a_ring], whose
  end

  # Root's processes and other users' are captured, the daemon ends when it is told to, and another can take its place.
  def assert_all_goes_on
    assert_dumped(kept(0), "root")
    assert_dumped(kept(ALICE), "another user")
    assert_equal "S", File.read("/proc/#{daemon.pid}/stat").rpartition(")").last.split.first
    began = now
    daemon.stop
    daemon.start
    assert_operator now - began, :<, 5
    assert_dumped(kept(ALICE), "another user, after a restart")
  end

  def sockets
    [daemon.pid, *daemon.children].flat_map { |pid| Dir["/proc/#{pid}/fd/*"].map { |link| File.readlink(link) } }.grep(/socket/)
  end

  def cmdline(pid) = File.read("/proc/#{pid}/cmdline").split("\0").first(3)

  # A ring that takes a moment to copy; what its writer has meanwhile. @return [highest descriptor, capabilities, fsuid]
  def look_at_writer
    attack("fat", 700)
    2000.times do
      daemon.children.each do |pid|
        next unless File.symlink?("/proc/#{pid}/fd/0") && File.readlink("/proc/#{pid}/fd/0").include?("/dumps/")

        status = File.read("/proc/#{pid}/status")
        next unless status.match?(/^Seccomp:\s+2/)

        return [Dir.children("/proc/#{pid}/fd").max, status[/^CapEff:\s+(\h+)/, 1], status[/^Uid:.*\s(\d+)$/, 1]]
      rescue SystemCallError
        next
      end
      sleep 0.002
    end
    nil
  end
end
