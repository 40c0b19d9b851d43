# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"
require "etc"

# C32: a container as production has it: another user than root, no capability, nothing writable but one directory.
class TestC32Containers < Minitest::Test
  include CaseHelper

  EXE = File.expand_path("../../exe/sdb", __dir__)
  PROGRAM = <<~RUBY
    $stdout.sync = true
    def busy = 50.times { |i| i.to_s }
    puts Sdb.status[:state], Sdb.status[:reason].to_s, Process.euid
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + Float(ENV["SECONDS"])
    busy while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
  RUBY

  def setup
    super
    skip "to become another user needs root" unless Process.euid.zero?
    skip "no setpriv" unless system("setpriv", "--version", out: File::NULL)
    skip "no namespaces here: unshare failed" unless system("unshare", "--mount", "true", err: File::NULL)
    File.chmod(0o755, @dir)
    @rings = File.join(@dir, "rings")
    Dir.mkdir(@rings)
    File.chown(nobody.uid, nobody.gid, @rings)
    @program = File.join(@dir, "program.rb")
    File.write(@program, PROGRAM)
  end

  def nobody = Etc.getpwnam("nobody")

  # The command in a mount namespace where all is read-only but the rings (and /proc, /dev).
  def contained(*command)
    script = <<~SH
      mount --bind "$1" "$1" && mount --bind / /mnt && mount -o remount,bind,ro /mnt && mount --rbind "$1" "/mnt$1" &&
        mount --rbind /proc /mnt/proc && mount --rbind /dev /mnt/dev && shift &&
        exec chroot /mnt setpriv --reuid=#{nobody.uid} --regid=#{nobody.gid} --clear-groups --bounding-set=-all \\
          --inh-caps=-all --no-new-privs "$@"
    SH
    ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", @rings, *command]
  end

  def ruby(*arguments) = contained(RbConfig.ruby, "-I#{LIB}", *arguments)

  def environment(**more)
    { "SDB" => nil, "SDB_DIR" => @rings, "SDB_RING" => "8M", "SECONDS" => "0.3" }
      .merge(more.transform_keys(&:to_s))
  end

  def test_it_records_and_the_commands_look_at_it_live
    input, out, err, waiter = Open3.popen3(environment(SECONDS: "30"), *ruby("-rsdb/auto", @program))
    input.close
    assert_equal ["running\n", "\n", "#{nobody.uid}\n"], Array.new(3) { out.gets }, -> { err.read }
    ring = Dir[File.join(@rings, "*.sdb")].first
    assert_equal nobody.uid, File.stat(ring).uid
    assert_equal 0o600, File.stat(ring).mode & 0o777
    sleep 0.5
    %w[top stacks status].each do |command|
      text, problem, status = Open3.capture3(environment, *ruby(EXE, command, *("--json" if command == "top"), @rings))
      assert_predicate status, :success?, "#{command}: #{problem}"
      assert_match(/busy|running/, text, command)
    end
  ensure
    Process.kill(:KILL, waiter.pid) if waiter
  end

  def test_without_a_place_to_write_the_app_runs_and_is_told_once
    out, err, status = Open3.capture3(environment(SDB_DIR: "/nowhere/rings"), *ruby("-rsdb/auto", @program))
    assert_predicate status, :success?, err
    state, reason, = out.lines(chomp: true)
    refute_equal "running", state
    assert_match(%r{/nowhere}, reason)
    assert_equal 1, err.lines.grep(/sdb/).size, err
  end
end
