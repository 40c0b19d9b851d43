# frozen_string_literal: true

require "test_helper"
require "bpf/support"
require "socket"
require "sdb/oom/death"

# A real multi-threaded Puma worker, recorded and killed: the right frames and requests in each dump.
class TestOomdPuma < Minitest::Test
  include BlackBox::Setup

  TIMES = Integer(ENV.fetch("SDB_OOM_TIMES", "4")) # each takes some seconds; 20 for the full proof
  DEMO = File.join(BlackBox::ROOT, "demo/Gemfile")

  # The command that starts Puma here, nil when there is none: the bundle of the demo, else a gem of the machine.
  def self.puma
    @puma ||= if system({ "BUNDLE_GEMFILE" => DEMO }, "bundle", "check", out: File::NULL, err: File::NULL)
                [{ "BUNDLE_GEMFILE" => DEMO }, %w[bundle exec puma]]
              elsif Gem::Specification.find_all_by_name("puma").any?
                [{ "BUNDLE_GEMFILE" => nil, "RUBYOPT" => nil }, [Gem.bin_path("puma", "puma")]]
              end
  end

  def setup
    super
    skip "puma is not installed (bin/setup test does it)" unless self.class.puma
    skip "this Ruby has no recorder" if Dir[File.join(BlackBox::ROOT, "lib/sdb/*/sdb_recorder.so")].empty?
  end

  def test_a_puma_that_spins_when_another_process_wants_memory_is_captured_each_time
    TIMES.times { assert_captured(%w[/spin /nap]) }
  end

  def test_a_puma_that_sleeps_when_another_process_wants_memory_is_captured_each_time
    TIMES.times { assert_captured(%w[/nap /nap /nap]) }
  end

  def test_the_report_names_the_leak_the_memory_and_the_requests
    server = start
    sockets = [request("/nap", "nap-1")]
    sleep 0.3
    sockets << request("/leak", "leak-1")
    server.wait
    dump = daemon.dump_of(server.pid)
    out, err, status = Open3.capture3(RbConfig.ruby, "-I#{BlackBox::ROOT}/lib", "#{BlackBox::ROOT}/exe/sdb", "oom", "show", dump.path)
    assert status.success?, err
    assert_match(/shop, pid \d+ was killed by the kernel's OOM killer/, out)
    assert_match(/the allocation that failed was made by the process itself/, out)
    assert_match(/Shop#leak/, out)
    assert_match(/Shop#rest .*shop.ru:\d+\n.*Shop#nap/, out)
    page = "#{@base}/out.html"
    assert Sdb::Oom::Death.read(dump.path).then { |death| File.open(page, "w") { |f| require("sdb/report/oom_page") && Sdb::Report::OomPage.write(death, f) } }
    assert_includes File.read(page), "Shop#leak"
  ensure
    sockets&.each(&:close)
  end

  def test_each_request_that_was_in_flight_is_named_by_its_id
    server = start
    sockets = [request("/nap", "nap-7"), request("/nap", "nap-8")]
    sleep 0.5
    server.kill
    server.wait
    death = Sdb::Oom::Death.read(daemon.dump_of(server.pid).path)
    assert_equal %w[nap-7 nap-8], death.spans.map(&:id).sort
    assert_equal(2, death.threads.count { |thread| thread.span && thread.frames.any? { |frame| frame.name == "Shop#rest" } })
  ensure
    sockets&.each(&:close)
  end

  def test_the_ring_alone_tells_the_same_but_the_kill_when_no_daemon_is_there
    daemon.stop
    @daemon = nil
    server = start(watched: false)
    sockets = [request("/nap", "nap-1"), request("/spin", "spin-1")]
    ring = ring_of(server)
    wait_for_names(ring, "Shop#rest", "Shop#spin")
    server.kill
    server.wait
    death = Sdb::Oom::Death.read(ring)
    assert_equal ["unknown", "shop", false], [death.cause, death.service, death.entry.complete]
    assert_equal({ "nap-1" => "Shop#rest", "spin-1" => "Shop#spin" }, methods_of_requests(death))
  ensure
    sockets&.each(&:close)
  end

  private

  def socket_path = "#{@base}/puma.sock"

  # SDB=1 as an operator sets it; the app knows nothing of sdb.
  def start(group: cgroup(192 << 20), adj: nil, watched: true)
    env, command = self.class.puma
    FileUtils.rm_f(socket_path)
    socket = @daemon&.name || (watched ? daemon.name : "#{@base}/none.sock")
    environment = env.merge("SDB" => "1", "SDB_DIR" => @rings, "SDB_SERVICE" => "shop", "SDB_OOMD" => socket, "SDB_RING" => "16M")
    ruby = command.first.end_with?("puma") && command.size == 1 ? [RbConfig.ruby, "-I#{BlackBox::ROOT}/lib", "-rsdb/auto"] : []
    environment["RUBYOPT"] = "-I#{BlackBox::ROOT}/lib -rsdb/auto" if ruby.empty?
    server = Server.new(environment, [*ruby, *command, "-q", "-t", "4:4", "-b", "unix://#{socket_path}", "#{__dir__}/shop.ru"],
                        cgroup: group, adj: adj, log: "#{@base}/puma.log", socket: socket_path)
    @children << server
    daemon.wait_for(server.pid) if watched
    server
  end

  # A process under its own pid, ready when it listens.
  class Server < BlackBox::Child
    def initialize(environment, command, cgroup:, adj:, log:, socket:)
      adj = "echo #{adj} > /proc/self/oom_score_adj; " if adj
      null, @stdin = IO.pipe
      null.close
      @pid = spawn(environment, "sh", "-c", "echo $$ > #{cgroup.procs}; #{adj}exec \"$@\"", "sh", *command, in: File::NULL, out: log, err: log)
      400.times do
        return UNIXSocket.new(socket).close
      rescue SystemCallError
        sleep 0.05
      end
      raise "puma did not start: #{File.read(log)}"
    end
  end

  def request(path, id)
    socket = UNIXSocket.new(socket_path)
    socket.write("GET #{path} HTTP/1.1\r\nHost: x\r\nX-Request-Id: #{id}\r\n\r\n")
    socket
  end

  # Not that of `bundle exec`, which becomes the server by exec and leaves a log of its own.
  def ring_of(server) = Dir["#{@rings}/#{server.pid}-*.sdb"].max_by { |path| File.mtime(path) }

  # Names come within 200 ms and are written 200 ms later; on a busy machine both take longer.
  def wait_for_names(ring, *names)
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 15
    loop do
      known = Sdb.open(ring).stacks.threads.flat_map { |thread| thread.frames.map(&:name) }
      return if (names - known).empty?

      flunk "not named: #{names - known}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > finish
      sleep 0.1
    end
  end

  # { id of a request => the method of the app that its thread is in }
  def methods_of_requests(death)
    open = death.spans.to_h { |span| [span.tid, span.id] }
    busy = death.threads.select { |thread| open[thread.tid] }
    busy.to_h { |thread| [open[thread.tid], thread.frames.map(&:name).grep(/\AShop#(rest|spin)/).first] }
  end

  WHERE = { "/nap" => "Shop#rest", "/spin" => "Shop#spin" }.freeze

  def assert_captured(paths)
    server = start(group: (group = cgroup(192 << 20)), adj: 1000)
    sockets = paths.each_with_index.map { |path, i| request(path, "r-#{i}") }
    wait_for_names(ring_of(server), *paths.map { |path| WHERE.fetch(path) })
    trigger = child(BlackBox::VICTIM, "trigger", 1, 1, "-", "-", cgroup: group, adj: 0)
    trigger.go
    server.wait
    death = Sdb::Oom::Death.read(daemon.dump_of(server.pid).path)
    trigger.finish
    sockets.each(&:close)
    assert_equal ["oom", true], [death.cause, death.entry.complete], death.flags.inspect
    assert_equal paths.each_with_index.to_h { |path, i| ["r-#{i}", WHERE.fetch(path)] }, methods_of_requests(death)
    @cgroups.delete(group).remove
  end
end
