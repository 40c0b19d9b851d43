# frozen_string_literal: true

require_relative "test_helper"
require "open3"
require "support/dump_encoder"

# `sdb oom` as root: what somebody else wrote is read by a process that could not do much harm.
class OomUnprivilegedTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  NOBODY = 65_534
  # Says on standard error who reads, and what that process can.
  SPY = <<~RUBY
    require "sdb/oom/death"
    Sdb::Oom::Death.singleton_class.prepend(Module.new do
      def read(path)
        warn "reads as \#{[Process.uid, Process.euid, Process.groups - [Process.gid]].inspect}, \#{File.readable?("/etc/shadow")}"
        warn "holds \#{Dir["/proc/self/fd/*"].filter_map { |fd| File.basename(File.readlink(fd)) rescue nil }.grep(/secret/)}"
        super
      end
    end)
  RUBY

  def setup
    skip "not root: nothing to give up" unless Process.euid.zero?
    @dir = Dir.mktmpdir # 0700, as the daemon's
    ring = RingEncoder.write("#{@dir}/ring", pid: 77, service: "shop", chunks: 2) do
      code :main, "<main>", path: "/app/main.rb", line: 1, base: 0x7f0000000000, addresses: [0x1000, 0]
      thread :main, tid: 77, main: true
      at 0, main: running("main:3")
      finish 100
    end
    @dump = DumpEncoder.write("#{@dir}/shop-77-20260801T000000.000Z.sdbdump", ring: ring, facts: { cause: "oom", service: "shop", pid: 77 }, flags: {})
    File.delete(ring) if ring != @dump
    File.chmod(0o600, @dump)
    File.write("#{@dir}/spy.rb", SPY)
  end

  def teardown = @dir && FileUtils.rm_rf(@dir)

  def test_a_dump_in_a_directory_of_roots_is_read_by_nobody
    [%w[show], %w[list], %w[show --json]].each do |words|
      out, err, status = sdb("oom", *words, @dump)
      assert status.success?, err
      assert_match(/shop/, out)
      assert_match(/reads as \[#{NOBODY}, #{NOBODY}, \[\]\], false/, err)
    end
  end

  def test_latest_and_a_directory_are_read_so_too
    out, err, = sdb("oom", "show", "latest", env: { "SDB_DUMPS" => @dir })
    assert_match(/shop, pid 77/, out)
    assert_match(/reads as \[#{NOBODY}/, err)
    assert_match(/shop/, sdb("oom", "list", @dir).first)
  end

  def test_a_page_is_written_with_roots_rights_from_what_nobody_made_of_it
    page = "#{@dir}/page.html"
    _, err, status = sdb("oom", "show", @dump, "-o", page)
    assert status.success?, err
    assert_includes File.read(page), "shop"
    assert_equal 0, File.stat(page).uid
  end

  def test_links_and_other_files_of_a_directory_do_not_get_into_its_hands
    File.write("#{@dir}/secret", "x" * 5000)
    File.symlink("#{@dir}/secret", "#{@dir}/a.sdbdump")
    FileUtils.cp("#{@dir}/secret", "#{@dir}/secret.sdb")
    _, err, = sdb("oom", "list", @dir)
    assert_match(/holds \[\]/, err)
  end

  def test_errors_are_one_line_as_ever
    File.binwrite(@dump, File.binread(@dump)[0, 100])
    _, err, status = sdb("oom", "show", @dump)
    assert_equal 1, status.exitstatus
    assert_match(/cut off/, err)
    _, err, status = sdb("oom", "show", "#{@dir}/none")
    assert_equal 1, status.exitstatus
    assert_match(/no such file/, err)
  end

  def test_it_works_where_nobody_may_read_sdb_itself
    FileUtils.mkdir_p("#{@dir}/own")
    FileUtils.cp_r(["#{ROOT}/lib", "#{ROOT}/exe"], "#{@dir}/own")
    _, err, status = sdb("oom", "show", @dump, "-o", "#{@dir}/page.html", from: "#{@dir}/own", spy: false)
    assert status.success?, err
    assert_includes File.read("#{@dir}/page.html"), "shop"
  end

  private

  def sdb(*arguments, env: {}, from: ROOT, spy: true)
    spies = spy ? ["-r#{@dir}/spy.rb"] : []
    Open3.capture3(env, RbConfig.ruby, "-I#{from}/lib", *spies, "#{from}/exe/sdb", *arguments, chdir: "/")
  end
end
