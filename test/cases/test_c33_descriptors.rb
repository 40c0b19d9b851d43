# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"
require "support/sandbox_helper"

# C33: what an app does with descriptor numbers is its own affair: daemons close all they do not know and then open their
# own files. Not one of these may get a byte of ours or be closed by us, and the recording goes on.
class TestC33Descriptors < Minitest::Test
  include CaseHelper
  include SandboxHelper

  # How the scanner keeps its files apart: a table of its own, made in one step; made by copying (Linux before 5.9); none
  # because a sandbox refuses both, with process_vm_readv and without (then /proc/self/mem is one more file).
  WAYS = {
    "a_table_of_its_own" => {},
    "a_copied_table" => { close_range: :enosys },
    "no_table_of_its_own" => { close_range: :eperm, unshare: :eperm },
    "no_table_of_its_own_and_memory_read_as_a_file" => { close_range: :eperm, unshare: :eperm, process_vm_readv: :eperm }
  }.freeze

  DAEMON = <<~RUBY
    #{TOOLS}
    # All but Ruby's own, without which it aborts (it has pipes, or an epoll and an eventfd).
    def close_all(range)
      range.each do |fd|
        target = File.readlink("/proc/self/fd/\#{fd}") rescue next
        IO.for_fd(fd, autoclose: true).close unless target.start_with?("anon_inode:", "pipe:")
      end
    end
    # Each with four bytes, at every number from 3 on that is free.
    def own_files(name)
      Array.new(300) do |i|
        File.open("\#{ENV["OWN"]}/\#{name}-\#{i}", File::RDWR | File::CREAT | File::EXCL).tap { |f| f.syswrite("mine") }
      end
    end
    def check(files)
      files.each do |f|
        raise "\#{f.path} (\#{f.fileno}) has \#{f.stat.size} bytes" unless f.stat.size == 4 && f.stat.file?
        f.sysseek(0)
        raise "\#{f.path} reads \#{text}" unless (text = f.sysread(8)) == "mine"
      end
    end
    def at_work_before = burn(0.05)
    def at_work_after = burn(0.3)
    def in_the_child = burn(0.3)
  RUBY

  # What becomes a daemon in the same process, then in a child 0, 5 and 50 ms after the fork.
  SERVICE = <<~RUBY
    #{DAEMON}
    at_work_before
    close_all(3..1023)
    files = own_files("daemon")
    at_work_after
    check(files)
    [0, 0.005, 0.05].each_with_index do |wait, n|
      pid = fork do
        sleep wait
        close_all(3..1023)
        files = own_files("child\#{n}")
        in_the_child
        check(files)
        Sdb.stop
        check(files)
      end
      Process.wait(pid)
      raise "child \#{n}: \#{$?}" unless $?.success?
    end
    puts "state=\#{Sdb.status[:state]}", "lost=\#{Sdb.status[:lost][:ring]}"
    Sdb.stop
    check(files)
  RUBY

  WAYS.each do |name, denied|
    define_method(:"test_a_daemon_keeps_its_files_and_its_log_with_#{name}") do
      own = File.join(@dir, "own")
      Dir.mkdir(own)
      result = program(SERVICE, before: denied.empty? ? [] : denying(denied), env: { "OWN" => own })
      assert_equal [:exit, 0], result.ending, "#{result.err}\n#{result.out}"
      assert_empty result.err
      assert_includes %w[running parked], result.figures["state"]
      assert_equal "0", result.figures["lost"]
      assert_empty %w[Object#at_work_before Object#at_work_after] - names(log_of(result))
      assert_equal 4, Dir[File.join(@dir, "*.sdb")].size
      children = (Dir[File.join(@dir, "*.sdb")] - Dir[File.join(@dir, "#{result.pid}-*.sdb")]).map { |path| Sdb.open(path) }
      children.each { |log| assert_includes names(log), "Object#in_the_child" }
    end
  end
end
