# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# support.rb - what the tests of the black box need: a memory cgroup of their own, the daemon, processes to be
# killed. Nothing here ever kills by name, and memory is only ever short inside the cgroup made here.

require "fileutils"
require "open3"
require "tmpdir"
require "sdb/oom/dump"

module BlackBox
  ROOT = File.expand_path("../..", __dir__)
  DAEMON = ENV.fetch("SDB_OOMD_BINARY") { File.join(ROOT, "bpf/.output/sdb-oomd") } # another build, with sanitizers
  VICTIM = File.join(ROOT, "tmp/bpf/victim")
  ATTACKER = File.join(ROOT, "tmp/bpf/attacker")

  # @return [String, nil] what is missing to run these tests
  def self.missing
    return "not root" unless Process.uid.zero?
    return "no sdb-oomd: #{ENV.fetch("SDB_BPF_MISSING", "run rake bpf")}" unless File.executable?(DAEMON)
    return "no BTF of the kernel" unless File.exist?("/sys/kernel/btf/vmlinux")

    "no memory cgroup can be made" unless Cgroup.available?
  end

  # A memory cgroup, v1 or v2, that exists for a block.
  class Cgroup
    V1 = "/sys/fs/cgroup/memory"
    V2 = "/sys/fs/cgroup"

    attr_reader :path

    def self.available?
      new(64 << 20).remove
      true
    rescue SystemCallError
      false
    end

    def initialize(limit)
      @v1 = File.exist?("#{V1}/memory.limit_in_bytes")
      @path = "#{@v1 ? V1 : V2}/sdb-test-#{Process.pid}-#{rand(1 << 32).to_s(16)}"
      Dir.mkdir(@path)
      File.write("#{@path}/#{@v1 ? "memory.limit_in_bytes" : "memory.max"}", limit.to_s)
    rescue SystemCallError
      Dir.rmdir(@path) if File.directory?(@path.to_s)
      raise
    end

    def procs = "#{@path}/cgroup.procs"

    # Ends what is still in it; only processes that a test put there can be.
    def remove
      100.times do
        File.readlines(procs).each do |pid|
          Process.kill(:KILL, pid.to_i)
        rescue StandardError
          Errno::ESRCH
        end
        break Dir.rmdir(@path)
      rescue Errno::EBUSY
        sleep 0.05
      end
    end
  end

  # A process that reads commands on stdin and answers "ready".
  class Child
    attr_reader :pid

    def initialize(*command, cgroup: nil, adj: nil)
      script = +""
      script << "echo $$ > #{cgroup.procs}; " if cgroup
      script << "echo #{adj} > /proc/self/oom_score_adj; " if adj
      reader, out = IO.pipe
      stdin, @stdin = IO.pipe
      @pid = spawn("sh", "-c", "#{script}exec \"$@\"", "sh", *command.map(&:to_s), in: stdin, out: out)
      [out, stdin].each(&:close)
      line = reader.gets
      raise "#{command.join(" ")}: said #{line.inspect}" unless line == "ready\n"

      @said = reader
    end

    def go = @stdin.puts

    def kill(signal = :KILL) = Process.kill(signal, @pid)

    # What it says until it ends, each line.
    def said = @said.read.lines

    # @return [Process::Status] never waits longer than ten seconds
    def wait
      200.times do
        _, status = Process.wait2(@pid, Process::WNOHANG)
        return @status = status if status

        sleep 0.05
      end
      raise "pid #{@pid} did not end"
    ensure
      [@stdin, @said].each { |io| io.close if io && !io.closed? }
    end

    def finish
      return if @status

      kill
      wait
    rescue Errno::ESRCH, Errno::ECHILD
      nil
    end
  end

  # sdb-oomd with a directory of its own.
  class Daemon
    attr_reader :dir, :name, :pid, :log

    def initialize(base, *options)
      @dir = "#{base}/dumps"
      @name = base # hears the processes of this test only
      @log = "#{base}/oomd.log"
      @options = options
      start
    end

    def start
      File.write(@log, "")
      @pid = spawn(DAEMON, "--dir", @dir, "--name", @name, "--verbose", *@options, err: [@log, "a"])
      200.times do
        return if File.read(@log).include?("listening")
        raise "sdb-oomd ended: #{File.read(@log)}" if Process.wait(@pid, Process::WNOHANG)

        sleep 0.05
      end
      raise "sdb-oomd did not start: #{File.read(@log)}"
    end

    def stop(signal = :TERM)
      Process.kill(signal, @pid)
      Process.wait(@pid)
    end

    # Returns when the daemon watches that process: a registration is a message without an answer.
    def wait_for(pid)
      200.times do
        return if File.read(@log).include?("watching pid #{pid} ")

        sleep 0.02
      end
      raise "pid #{pid} is not watched: #{File.read(@log)}"
    end

    def dumps = Dir["#{@dir}/*.sdbdump"].sort

    # @return [Sdb::Oom::Dump] the dump of that process; waits up to five seconds
    def dump_of(pid)
      100.times do
        path = dumps.find { |name| File.basename(name).include?("-#{pid}-") }
        return Sdb::Oom::Dump.read(path) if path

        sleep 0.05
      end
      raise "no dump of #{pid}; log:\n#{File.read(@log)}"
    end

    # The processes that it has for what it must not do itself.
    def children(pid = @pid) = File.read("/proc/#{pid}/task/#{pid}/children").split.map(&:to_i)

    def descriptors = Dir.children("/proc/#{@pid}/fd").size

    def rss_kb = File.read("/proc/#{@pid}/status")[/VmRSS:\s+(\d+)/, 1].to_i
  end

  # Included by test classes: a folder, a daemon, children that do not outlive the test.
  module Setup
    def setup
      super
      missing = BlackBox.missing
      skip missing if missing

      @base = Dir.mktmpdir("sdb-oomd")
      @rings = "#{@base}/rings"
      Dir.mkdir(@rings, 0o700)
      @children = []
      @cgroups = []
      @daemon = nil
    end

    def teardown
      @children&.each(&:finish)
      @cgroups&.each(&:remove)
      @daemon&.stop
    rescue Errno::ESRCH, Errno::ECHILD
      nil # it ended by itself
    ensure
      FileUtils.rm_rf(@base) if @base
      super
    end

    def daemon(*options)
      @daemon ||= Daemon.new(@base, *options)
    end

    def cgroup(limit = 64 << 20)
      @cgroups << Cgroup.new(limit)
      @cgroups.last
    end

    def child(*command, **options)
      @children << Child.new(*command, **options)
      @children.last
    end

    def victim(mode, threads: 6, frames: 50, hold: 0, name: daemon.name, watched: true, **options)
      process = child(VICTIM, mode, threads, frames, name, @rings, hold, **options)
      daemon.wait_for(process.pid) if watched
      process
    end

    # Every thread of the C victim with exactly the frames that it put there.
    def assert_right_frames(dump, threads: 6, frames: 50)
      captured = dump.threads
      assert_equal threads, captured.size, "threads: #{dump.flags}"
      captured.each do |thread|
        wanted = Array.new(frames) { |i| 0x10000 * (thread.slot + 1) + 16 * i }
        assert_equal wanted, thread.frames.map(&:iseq), "iseqs of thread #{thread.slot}"
        assert_equal wanted.map { |a| a + 8 }, thread.frames.map(&:pc)
        assert_equal wanted.map { |a| a + 1 }, thread.frames.map(&:method)
        assert_equal thread.slot + 1000, thread.span_id
      end
    end
  end
end
