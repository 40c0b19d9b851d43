# frozen_string_literal: true

require "test_helper"
require "bpf/support"
require "socket"
require "timeout"

# What a process without privileges may try against the daemon: it gains nothing, and the others lose nothing.
class TestOomdHostile < Minitest::Test
  include BlackBox::Setup

  NOBODY = 65_534
  MAGIC = 0x6d6f6f6264732f01
  MEMFD_CREATE = { "x86_64" => 319, "aarch64" => 279 }.freeze

  def setup
    super
    File.chmod(0o711, @base)
    daemon
  end

  def test_messages_that_are_none_are_refused_and_the_others_are_still_heard
    as_nobody do |socket|
      ["", "x", "x" * 5000, packet(magic: 1), packet(version: 2), packet[0, 100], packet + "x",
       packet(table: 7), packet(table: 0xffff_8880_0000_0000), packet(reserved: 1)].each { |bytes| tell(socket, bytes, File.open(ring)) }
      tell(socket, packet)
      tell(socket, packet, File.open(ring), File.open(ring), File.open(ring))
    end
    assert_heard
    refute_match(/watching pid #{@hostile}/, log)
  end

  def test_descriptors_that_are_no_ring_on_a_local_disk_are_refused_with_the_reason
    system("mkfifo", "#{@base}/fifo")
    { "not a regular one" => -> { File.open("/") }, "cannot be read from" => -> { File.open(writable, "w") },
      "too small" => -> { File.open("/etc/hostname") }, "on no mount|not on a local" => -> { memfd } }.each do |words, make|
      restart
      as_nobody { |socket| tell(socket, packet, make.call) }
      wait_for_log(/pid #{@hostile}, uid #{NOBODY} was refused: .*(?:#{words})/)
    end
    [-> { File.open("#{@base}/fifo", "r+") }, -> { File.open("/dev/zero") }, -> { File.open("/proc/self/mem") },
     -> { UNIXSocket.pair.first }].each do |make|
      restart
      as_nobody(uid: nil) { |socket| tell(socket, packet, make.call) }
      wait_for_log(/pid #{@hostile}, uid 0 was refused/)
    end
    assert_heard
  end

  def test_who_sent_what_no_honest_process_has_is_not_listened_to_for_a_while
    as_nobody { |socket| tell(socket, packet, File.open("/")) }
    wait_for_log(/pid #{@hostile}.*refused/)
    as_nobody { |socket| tell(socket, packet, File.open(ring)) }
    wait_for_log(/pid #{@hostile}.*too many of them/)
    assert_heard
  end

  def test_a_process_cannot_speak_for_another_nor_with_two_identities
    as_nobody { |socket| tell(socket, packet(ticks: ticks(1)), File.open(ring)) }
    wait_for_log(/pid #{@hostile} of uid #{NOBODY} is not watched: it is not what it says/)
    as_nobody(uid: [0, NOBODY]) { |socket| tell(socket, packet, File.open(ring)) }
    wait_for_log(/pid #{@hostile} of uid \d+ is not watched: it is not what it says/)
    assert_heard
  end

  def test_a_flood_leaves_no_descriptor_open_and_others_are_still_captured
    before = daemon.descriptors
    as_nobody(wait: false) do |socket|
      file = File.open(ring)
      begin
        Timeout.timeout(3) { loop { tell(socket, packet, file) } }
      rescue StandardError
        Timeout::Error
      end
    end
    sleep 0.3
    assert_heard
    Process.wait(@hostile)
    sleep 0.3
    assert_operator daemon.descriptors, :<=, before + 2
    assert_operator File.size(daemon.log), :<, 64 << 10, "a flood does not fill the log"
  end

  def test_a_name_is_a_name_and_no_path
    as_nobody(stay: true) { |socket| tell(socket, packet(service: "../../etc/cron.d/\n\e[31mx"), File.open(ring)) }
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
    process = victim("sleep", socket: "-", watched: false)
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
      as_nobody(stay: true) { |socket| tell(socket, packet, File.open(ring)) }
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

  def ring
    @ring ||= "#{@base}/some.sdb".tap do |path|
      File.binwrite(path, "\0" * (128 << 10))
      File.chmod(0o644, path)
    end
  end

  def writable
    @writable ||= "#{@base}/writable".tap { |path| File.write(path, "") && File.chmod(0o666, path) }
  end

  def memfd
    number = MEMFD_CREATE.fetch(RbConfig::CONFIG["host_cpu"])
    verbose = $VERBOSE
    $VERBOSE = nil # Kernel#syscall warns
    IO.for_fd(syscall(number, +"ring", 0), "r+").tap { |io| io.write("\0" * (128 << 10)) && io.flush }
  ensure
    $VERBOSE = verbose
  end

  def ticks(pid = Process.pid) = File.read("/proc/#{pid}/stat").rpartition(")").last.split[19].to_i

  def packet(magic: MAGIC, version: 1, table: 0, ticks: ticks(), service: "evil", reserved: 0)
    [magic].pack("Q") + [version, 136].pack("LL") + [table, 1, ticks].pack("Q3") + [service].pack("a64") + [reserved, 0, 0, 0].pack("Q4")
  end

  def tell(socket, bytes, *files)
    rights = files.map { |file| file.fileno }
    control = files.empty? ? [] : [Socket::AncillaryData.int(:UNIX, :SOCKET, :RIGHTS, rights.first)]
    control = [Socket::AncillaryData.new(:UNIX, :SOCKET, :RIGHTS, rights.pack("i*"))] if rights.size > 1
    socket.sendmsg(bytes, Socket::MSG_DONTWAIT, nil, *control)
  rescue Errno::EAGAIN, Errno::ENOBUFS, Errno::ETOOMANYREFS, Errno::EMSGSIZE
    nil
  end

  # Runs the block in a process of that user (uid: [effective, real] for a divided one).
  def as_nobody(uid: NOBODY, wait: true, stay: false)
    [ring, writable] # made by root
    ready, told = IO.pipe
    @hostile = fork do
      ready.close
      real, effective = Array(uid).reverse.then { |first, second| [first, second || first] }
      Process::Sys.setresuid(real, effective, effective) if uid
      socket = Socket.new(:UNIX, :DGRAM)
      socket.connect(Socket.sockaddr_un(daemon.socket))
      yield socket
      told.close
      sleep if stay
      sleep 0.3 # the daemon looks at who sent it
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
