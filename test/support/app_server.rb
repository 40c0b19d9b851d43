# frozen_string_literal: true

require "fileutils"
require "json"
require "net/http"
require "open3"
require "rbconfig"
require "sdb/environment"
require "sdb/open"
require "socket"
require "tmpdir"

# Real servers and workers of other processes, recorded by environment alone, and the logs they leave.
module AppServer
  ROOT = File.expand_path("../..", __dir__)
  APPS = File.expand_path("../apps", __dir__)

  def setup
    super
    @work = Dir.mktmpdir("sdb-app")
    @rings = File.join(@work, "rings")
    @servers = []
  end

  def teardown
    @servers.each { |pid| stop(pid) }
    FileUtils.rm_rf(@work)
    super
  end

  def free_port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }

  # How the gem gets in: :env is `sdb env`, :option RUBYOPT alone, :bundle the gem in the bundle and SDB=1, nil not at all.
  def environment(way, **more)
    # A program started from here must not find the settings of the bundle that runs these tests.
    env = ENV.keys.grep(/\A(BUNDLER_|BUNDLE_BIN_PATH|RUBYLIB)/).to_h { |key| [key, nil] }
    env.update("SDB_DIR" => @rings, "SDB_RING" => "16M", "SDB_MAX_CPU" => "0", "RUBYOPT" => nil, "SDB" => nil)
    env["RUBYOPT"] = "-I#{ROOT}/lib -rsdb/auto" if way == :option
    env.update(Sdb::Environment.variables({})) if way == :env
    env["SDB"] = "1" if way == :bundle
    env.merge(more.transform_keys(&:to_s))
  end

  # Starts a program and waits until it listens on the port (nil: does not). @return pid
  def start(*command, port: nil, way: :option, env: {}, chdir: APPS)
    @log = File.join(@work, "server-#{@servers.size}.log")
    pid = Process.spawn(environment(way).merge(env), *command, chdir: chdir, out: @log, err: %i[child out], in: File::NULL)
    @servers << pid
    wait_until("#{command.join(" ")} listens") { !port || listens?(port) || raise_if_dead(pid) }
    pid
  end

  def bundle(*command) = ["bundle", "exec", *command]

  def listens?(port)
    TCPSocket.open("127.0.0.1", port).close
    true
  rescue SystemCallError
    false
  end

  def raise_if_dead(pid)
    return false unless Process.wait(pid, Process::WNOHANG)

    @servers.delete(pid)
    flunk("it ended: #{$?}\n#{File.read(@log)}")
  end

  def wait_until(what, seconds: 60)
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    until (result = yield)
      flunk("waited #{seconds} s until #{what}\n#{@log && File.read(@log)}") if Process.clock_gettime(Process::CLOCK_MONOTONIC) > finish
      sleep 0.05
    end
    result
  end

  def stop(pid, signal: :TERM)
    return unless @servers.delete(pid)

    Process.kill(signal, pid)
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 15
    until Process.wait(pid, Process::WNOHANG)
      if Process.clock_gettime(Process::CLOCK_MONOTONIC) > finish
        # Puma 8 on Ruby 3.3 does so once in 30 times on a busy machine, with sdb and without: no failure of ours, and
        # the log of a killed process must tell the same.
        warn "pid #{pid} did not end by #{signal}: killed"
        Process.kill(:KILL, pid)
        Process.wait(pid)
        break
      end
      sleep 0.02
    end
    $?
  end

  def get(port, path, headers = {})
    Net::HTTP.start("127.0.0.1", port, read_timeout: 30) { |http| http.get(path, headers) }
  end

  def get!(port, path, headers = {})
    response = get(port, path, headers)
    assert_kind_of Net::HTTPSuccess, response, "#{path}: #{response.body.to_s[0, 500]}\n#{File.read(@log)[-2000..]}"
    response
  end

  # Rings of processes that did some of the app's work, not of `bundle exec` on its way to the server.
  def working_rings(profile = self.profile)
    pids = spans(profile).map(&:pid).uniq
    profile.rings.select { |ring| pids.include?(ring.pid) }
  end

  def ring_files = Dir[File.join(@rings, "*.sdb")].sort

  # Everything that was recorded, merged.
  def profile(**filters) = Sdb.open(@rings, **filters)

  def spans(profile = self.profile, **filters) = profile.spans(**filters).spans

  # The command line, as a user has it. @return [stdout, stderr, status]
  def sdb(*arguments, env: {})
    Open3.capture3({ "RUBYOPT" => nil, "SDB" => nil }.merge(env), RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/sdb", *arguments.map(&:to_s), chdir: @work)
  end

  def sdb_json(*arguments)
    out, err, status = sdb(*arguments, "--json", @rings)
    assert_predicate status, :success?, err
    JSON.parse(out)
  end
end
