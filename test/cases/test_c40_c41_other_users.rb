# frozen_string_literal: true

require_relative "../test_helper"
require "json"
require "support/case_helper"

# C40, C41: a master that is root with workers that are not, volumes that several users may write to, and a folder that
# another user made first.
class TestC40C41OtherUsers < Minitest::Test
  include CaseHelper

  EXE = File.expand_path("../../exe/sdb", __dir__)
  WORKER = 12_345
  MALLORY = 23_456

  def setup
    super
    skip "to become another user needs root" unless Process.euid.zero?
    File.chmod(0o755, @dir)
    @tmp = directory("tmp", 0o1777)
  end

  def directory(name, mode, owner = 0)
    File.join(@dir, name).tap do |path|
      Dir.mkdir(path)
      File.chmod(mode, path)
      File.chown(owner, owner, path)
    end
  end

  # Forks, drops root as early as an app server does, tells what became of its log, and the same of the master.
  MASTER = <<~RUBY
    #{TOOLS}
    def as_the_worker = burn(0.15)
    reader, writer = IO.pipe
    # A child has its file 10 ms after the fork. One that did not get to run before is still root then: another one, please.
    begin
      pid = fork do
        Process::Sys.setgid(#{WORKER})
        Process::Sys.setuid(#{WORKER})
        first = Sdb.status[:ring]
        exit!(3) if first && first.include?("/\#{$$}-")
        writer.puts "first=\#{first.inspect}"
        as_the_worker
        sleep 0.1
        status = Sdb.status
        writer.puts "state=\#{status[:state]}", "ring=\#{status[:ring].inspect}", "reason=\#{status[:reason].inspect}",
                    "warnings=\#{status[:warnings].inspect}"
        Sdb.stop
      end
      Process.wait(pid)
      Dir["\#{ENV["SDB_DIR"]}/\#{pid}-*", "\#{ENV["SDB_DIR"]}/sdb-0/\#{pid}-*"].each { |path| File.unlink(path) } if $?.exitstatus == 3
    end while $?.exitstatus == 3
    writer.close
    puts reader.read
    puts "master=\#{Sdb.status[:state]} \#{Sdb.status[:ring]}"
  RUBY

  def told(result) = result.out.lines(chomp: true).to_h { |line| line.split("=", 2) }

  def master(dir) = program!(MASTER, dir: dir, env: { "TMPDIR" => @tmp })

  def assert_log_of_the_worker(path)
    assert_equal WORKER, File.stat(path).uid
    assert_includes names(Sdb.open(path)), "Object#as_the_worker"
  end

  def test_a_worker_that_drops_root_has_its_own_log_below_the_temp_dir
    rings = directory("rings", 0o700)
    result = master(rings)
    told = told(result)
    assert_equal "nil", told["first"], "not the master's"
    assert_match(/\A(running|parked)\z/, told["state"])
    path = told["ring"].delete('"')
    assert_equal "#{@tmp}/sdb-#{WORKER}", File.dirname(path)
    assert_log_of_the_worker(path)
    line = "#{rings}: Permission denied; set SDB_DIR to a directory that this user may write to; the log is #{path}"
    assert_equal "sdb: #{line}\n", result.err
    assert_includes told["warnings"], line
    assert_equal [result.pid], Dir.children(rings).map(&:to_i)
    assert_match %r{\A(running|parked) #{rings}/#{result.pid}-}, told["master"]
  end

  def test_a_worker_that_can_write_nowhere_says_so_once
    Dir.mkdir(File.join(@tmp, "sdb-#{WORKER}")) # root's
    (1..9).each { |n| File.write(File.join(@tmp, "sdb-#{WORKER}.#{n}"), "") }
    result = master(directory("rings", 0o700))
    told = told(result)
    assert_equal %w[disabled nil], told.values_at("state", "ring")
    assert_match(/rings: Permission denied/, told["reason"])
    assert_equal 1, result.err.lines.size, result.err
    assert_match(/\Asdb: not recording: .*rings: Permission denied; set SDB_DIR/, result.err)
    assert_match(/\A(running|parked) /, told["master"])
  end

  # A volume of Kubernetes: root's, and writable by all (emptyDir) or by a group (fsGroup), sticky or not.
  { "everybody" => 0o777, "everybody_and_is_sticky" => 0o1777, "a_group" => 0o2775 }.each do |who, mode|
    define_method(:"test_a_volume_that_#{who}_may_write_to_has_a_folder_for_each_user") do
      volume = directory("volume", mode)
      File.chown(0, WORKER, volume)
      File.chmod(mode, volume)
      result = master(volume)
      assert_empty result.err
      path = told(result)["ring"].delete('"')
      assert_equal "#{volume}/sdb-#{WORKER}", File.dirname(path)
      assert_log_of_the_worker(path)
      assert_equal 0o700, File.stat(File.dirname(path)).mode & 0o777
      assert_equal [result.pid], pids_listed({ "SDB_DIR" => volume })
      assert_equal [File.basename(path).to_i], pids_listed({ "SDB_DIR" => volume }, user: WORKER)
      assert_equal [result.pid], pids_listed({ "SDB_DIR" => nil }, volume), "what is named: the user's own there"
    end
  end

  def sdb(env, *words, user: 0)
    drop = user.zero? ? [] : ["setpriv", "--reuid=#{user}", "--regid=#{user}", "--clear-groups"]
    Open3.capture3({ "TMPDIR" => @tmp, "SDB_DIR" => nil }.merge(env), *drop, RbConfig.ruby, "-I#{LIB}", EXE, *words, chdir: @dir)
  end

  def pids_listed(env, *words, user: 0)
    out, err, status = sdb(env, "ls", "--json", *words, user: user)
    assert_predicate status, :success?, err
    JSON.parse(out)["rings"].map { |ring| ring["pid"] }
  end

  # The folder of the victim, made first by another user: as a link to his own, or as a directory with a log that he forged.
  def test_a_folder_that_another_user_made_first_is_neither_read_nor_written
    forged = program!("sleep 0.05", dir: directory("forged", 0o700))
    trap = directory("trap", 0o777, MALLORY)
    FileUtils.cp(Dir[File.join(@dir, "forged", "*.sdb")].first, File.join(trap, "1-2-0123456789abcdef.sdb"))
    FileUtils.chown_R(MALLORY, MALLORY, trap)
    folder = File.join(@tmp, "sdb-0")
    [-> { File.symlink(trap, folder) }, -> { File.rename(trap, folder) }].each do |make|
      make.call
      File.lchown(MALLORY, MALLORY, folder)
      out, err, = sdb({}, "ls")
      assert_empty out
      assert_match(/no log in .*sdb-0 is another user's: not read/, err)
      assert_match(/no log/, sdb({}, "status", "latest")[1])

      _, err, status = sdb({}, "record", "--", RbConfig.ruby, "-e", "sleep 0.1")
      assert_predicate status, :success?, err
      assert_match(%r{sdb-0 is another user's; using #{@tmp}/sdb-0.1}, err)
      runs = Dir[File.join(@tmp, "sdb-0.1", "record-*")]
      assert_equal 1, runs.size
      assert_equal [0o700, 0], File.stat(File.dirname(runs.first)).then { |st| [st.mode & 0o777, st.uid] }
      assert_equal 1, Dir.children(File.realpath(folder)).size, "nothing came to the other user's"
      refute_includes pids_listed({}, "latest"), forged.pid
      FileUtils.rm_rf(File.join(@tmp, "sdb-0.1"))
      File.unlink(folder) if File.symlink?(folder)
    end
  end

  def test_files_of_others_in_a_shared_folder_are_left_out_and_it_is_said
    volume = directory("volume", 0o1777)
    forged = program!("sleep 0.05", dir: volume)
    FileUtils.cp(Dir[File.join(volume, "sdb-0", "*.sdb")].first, File.join(volume, "1-2-0123456789abcdef.sdb"))
    File.chown(MALLORY, MALLORY, File.join(volume, "1-2-0123456789abcdef.sdb"))
    File.symlink("/etc/passwd", File.join(volume, "1-3-0123456789abcdef.sdb"))
    out, err, = sdb({ "SDB_DIR" => volume }, "ls", "--json")
    assert_equal [forged.pid], JSON.parse(out)["rings"].map { |ring| ring["pid"] }
    assert_match(/#{volume}: 2 of other users left out/, err)
  end
end
