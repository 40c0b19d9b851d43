# frozen_string_literal: true

require "test_helper"
require "bpf/support"
require "socket"

# What a process without privileges may try against the daemon: it gains nothing, and the others lose nothing.
class TestOomdHostile < Minitest::Test
  include BlackBox::Setup

  NOBODY = 65_534
  MAGIC = 0x6d6f6f6264732f01
  # by machine: prctl, memfd_create
  CALLS = { "x86_64" => [157, 319], "aarch64" => [167, 279] }.fetch(RbConfig::CONFIG["host_cpu"])
  SET_NAME = 15

  def setup
    super
    File.chmod(0o711, @base)
    daemon
  end

  def test_registrations_that_are_none_are_refused_and_the_others_are_still_heard
    wrong = [packet(version: 1), packet(bytes: 100), packet(table: 7), packet(table: 0xffff_8880_0000_0000), packet(reserved: 1),
             packet(fd: 0xffff_ffff)]
    as_nobody { ["x", "x" * 8, "x" * 500, packet(magic: 1), *wrong].each { |bytes| say(bytes) } }
    wait_for_log(/pid #{@hostile} of uid #{NOBODY} is not watched: a version that this daemon does not know/)
    wait_for_log(/pid #{@hostile} of uid #{NOBODY} is not watched: a descriptor that cannot be one/)
    as_nobody { [0, 8, 0xffff_8880_0000_0000, (1 << 56) - 8, 0x1000].each { |address| say_at(address) } }
    assert_heard
    refute_match(/watching pid #{@hostile}/, log)
  end

  def test_files_that_are_no_ring_on_a_local_disk_are_not_kept_and_the_log_says_why
    system("mkfifo", "#{@base}/fifo")
    { "not a regular one" => -> { File.open("/tmp") }, "too small" => -> { File.open("/etc/hostname") },
      "no ring" => -> { memfd }, "not on a local" => -> { File.open("/proc/self/maps") },
      "cannot be opened by its user" => -> { UNIXSocket.pair.first } }.each do |words, make|
      restart
      as_nobody { say(packet(fd: make.call.fileno)) }
      wait_for_log(/the ring of pid #{@hostile}, uid #{NOBODY} is not kept: .*#{words}/)
    end
    [-> { File.open("#{@base}/fifo", "r+") }, -> { File.open("/dev/zero") }, -> { File.open("/proc/self/mem") },
     -> { UNIXSocket.pair.first }].each do |make|
      restart
      as_nobody(uid: nil) { say(packet(fd: make.call.fileno)) }
      wait_for_log(/the ring of pid #{@hostile}, uid 0 is not kept/)
    end
    assert_heard
  end

  # A descriptor that somebody with more rights left open to it: the keeper opens the file anew, with the user's own.
  def test_what_its_user_may_not_read_is_not_copied_for_it
    File.chmod(0o600, ring)
    inherited = File.open(ring)
    as_nobody { say(packet(fd: inherited.fileno)) }
    wait_for_log(/the ring of pid #{@hostile}, uid #{NOBODY} is not kept: its file cannot be opened by its user/)
  end

  def test_a_process_cannot_speak_for_another_nor_with_two_identities
    as_nobody { say(packet(ticks: ticks(1))) }
    wait_for_log(/pid #{@hostile} of uid #{NOBODY} is not watched: it is not what it says/)
    as_nobody(uid: [0, NOBODY]) { say(packet) }
    wait_for_log(/pid #{@hostile} of uid \d+ is not watched: it is not what it says/)
    assert_heard
  end

  def test_a_flood_leaves_no_descriptor_open_and_others_are_still_captured
    before = daemon.descriptors
    as_nobody(wait: false) do
      file = File.open(ring)
      till = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 3
      number = 0
      say(packet(fd: file.fileno, recording: number += 1)) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < till
    end
    sleep 0.3
    assert_heard
    Process.wait(@hostile)
    wait_for_log(/registrations were refused: too many of one user/)
    sleep 0.3
    assert_operator daemon.descriptors, :<=, before + 6, "the keepers of two users"
    assert_operator File.size(daemon.log), :<, 64 << 10, "a flood does not fill the log"
  end

  def test_a_name_is_a_name_and_no_path
    as_nobody(stay: true) { say(packet(service: "-./../etc/cron.d/\n\e[31mx")) }
    daemon.wait_for(@hostile)
    Process.kill(:KILL, @hostile)
    Process.wait(@hostile)
    dump = daemon.dump_of(@hostile)
    assert_equal daemon.dir, File.dirname(dump.path)
    assert_match(/\A_\._\.\._etc_cron\.d____31mx-#{@hostile}-/, File.basename(dump.path))
    assert_equal [1, 0], [dump.flags[:unarmed], dump.flags[:complete]]
    assert_equal [NOBODY, 0o600], [File.stat(dump.path).uid, File.stat(dump.path).mode & 0o777]
  end

  def test_a_ring_that_shrinks_or_is_overwritten_gives_a_flagged_dump
    { "truncated" => ->(path) { File.truncate(path, 0) }, "junk" => ->(path) { File.binwrite(path, "j" * (1 << 20)) } }.each_value do |harm|
      process = victim("sleep", threads: 2)
      harm.call(Dir["#{@rings}/#{process.pid}-*.sdb"].first)
      process.kill
      process.wait
      dump = daemon.dump_of(process.pid)
      assert_equal [1, 0], [dump.flags[:not_a_ring], dump.flags[:complete]]
      assert_right_frames(dump, threads: 2)
    end
    assert_heard
  end

  def test_a_table_full_of_lies_gives_a_flagged_dump_in_bounded_time
    process = victim("liar", threads: 4)
    process.kill
    process.wait
    dump = daemon.dump_of(process.pid)
    assert_equal 0, dump.flags[:complete]
    assert_equal 1, dump.flags[:head_stale]
    assert_operator dump.flags[:read_errors], :>, 0
    assert_operator dump.number(:capture_bytes), :<=, (1 << 20) + (64 << 10)
    assert_operator dump.number(:capture_ns), :<, 500_000_000 # the machine may stand still meanwhile
    assert_heard
  end

  def test_links_and_rings_of_other_users_in_a_watched_directory_are_not_followed
    process = victim("sleep", name: "-", watched: false)
    own = Dir["#{@rings}/#{process.pid}-*.sdb"].first
    watched = "#{@base}/watched"
    Dir.mkdir(watched)
    File.symlink(own, "#{watched}/link.sdb")
    FileUtils.cp(own, "#{watched}/copy.sdb")
    File.chown(NOBODY, nil, "#{watched}/copy.sdb")
    system("mkfifo", "#{watched}/fifo.sdb")
    restart("--rings", watched)
    assert_heard
    refute_match(/watching pid #{process.pid}/, log)
  end

  def test_a_user_whose_processes_die_all_the_time_loses_his_own_dumps_only
    restart("--keep-files", "4", "--dumps-a-minute", "3")
    pid = kill_one
    4.times do
      as_nobody(stay: true) { say(packet) }
      daemon.wait_for(@hostile)
      Process.kill(:KILL, @hostile)
      Process.wait(@hostile)
      sleep 0.2
    end
    wait_for_log(/was killed; no dump: more than 3 a minute of uid #{NOBODY}/)
    assert_equal 3, daemon.dumps.count { |path| File.stat(path).uid == NOBODY }
    other = kill_one
    third = kill_one
    assert_equal [pid, other, third], daemon.dumps.reject { |path| File.stat(path).uid == NOBODY }.map { |path| path[/-(\d+)-\d{8}T/, 1].to_i }.sort
  end

  private

  def log = File.read(daemon.log)

  def wait_for_log(pattern)
    100.times { log.match?(pattern) ? break : sleep(0.05) }
    assert_match(pattern, log)
  end

  def restart(*options)
    @daemon.stop
    @daemon = nil
    daemon(*options)
  end

  def kill_one
    process = victim("sleep", threads: 2)
    process.kill
    process.wait
    daemon.dump_of(process.pid)
    process.pid
  end

  # The daemon works as ever.
  def assert_heard
    process = victim("sleep", threads: 2)
    process.kill
    process.wait
    assert_right_frames(daemon.dump_of(process.pid), threads: 2)
  end

  RING_MAGIC = File.binread(File.join(BlackBox::ROOT, "ext/format/ring_format.h"))[/SDB_MAGIC\s[^0]*0x(\h+)/m, 1].to_i(16)

  def ring
    @ring ||= "#{@base}/some.sdb".tap do |path|
      File.binwrite(path, [RING_MAGIC].pack("Q") + ("\0" * (128 << 10)))
      File.chmod(0o644, path)
    end
  end

  def memfd
    IO.for_fd(call(CALLS[1], +"ring", 0), "r+").tap { |io| io.write("\0" * (128 << 10)) && io.flush }
  end

  def ticks(pid = Process.pid) = File.read("/proc/#{pid}/stat").rpartition(")").last.split[19].to_i

  def packet(magic: MAGIC, version: 2, bytes: 144, table: 0, ticks: ticks(), fd: @ring_fd || 0, service: "evil", reserved: 0, recording: 1)
    [magic, version, bytes, table, 1, ticks, channel, recording, fd, reserved].pack("QLLQ3Q2LL") + [service].pack("a64") + [0, 0].pack("Q2")
  end

  # As ext/format/oom_protocol.h has it, of the daemon's name.
  def channel = daemon.name.bytes.reduce(0xcbf29ce484222325) { |h, byte| ((h ^ byte) * 0x100000001b3) & 0xffff_ffff_ffff_ffff }

  def say(bytes) = say_at([bytes].pack("P").unpack1("Q"))

  def say_at(address)
    word = "\x01sdb".b + Array.new(8) { |i| 0x80 | ((address >> (7 * i)) & 0x7f) }.pack("C8")
    call(CALLS[0], SET_NAME, word)
    call(CALLS[0], SET_NAME, +"ruby")
  end

  def call(number, *arguments)
    verbose = $VERBOSE
    $VERBOSE = nil # Kernel#syscall warns
    syscall(number, *arguments)
  ensure
    $VERBOSE = verbose
  end

  # Runs the block in a process of that user (uid: [effective, real] for a divided one).
  def as_nobody(uid: NOBODY, wait: true, stay: false)
    ring # made by root
    ready, told = IO.pipe
    @hostile = fork do
      ready.close
      real, effective = Array(uid).reverse.then { |first, second| [first, second || first] }
      Process::Sys.setresuid(real, effective, effective) if uid
      call(CALLS[0], 4, 1, 0, 0, 0) # PR_SET_DUMPABLE, which changing one's uid took away
      own = File.open(ring) if File.readable?(ring)
      @ring_fd = own&.fileno
      yield
      told.close
      sleep if stay
      sleep 0.3 # the daemon looks at it
    rescue StandardError => e
      warn "hostile process: #{e.class}: #{e.message}"
    ensure
      exit!(0)
    end
    told.close
    ready.read if stay
    Process.wait(@hostile) if wait && !stay
  ensure
    ready&.close
  end
end
