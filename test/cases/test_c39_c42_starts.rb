# frozen_string_literal: true

require "test_helper"
require "json"
require "sdb"
require "sdb/open"
require "support/installed_gem"

# Starting where almost nothing is there (C39), and the variables in a container in which people call tools (C42).
class TestC39C42Starts < Minitest::Test
  include InstalledGem

  STATUS = "status = Sdb.status; puts status[:state], status[:reason], status[:warnings]; puts Sdb.start.class; Sdb.stop"

  def test_a_working_directory_that_is_gone
    write("app.rb", "#{STATUS}\n")
    out = shell!("mkdir gone; cd gone; rmdir ../gone; ruby -w ../app.rb 2>/dev/null || ruby -w #{@work.dump}/app.rb")
    assert_equal %w[running Sdb::Recorder], out.lines.map(&:chomp).reject(&:empty?)
    # Where the log shall be cannot be told from there: a line, and the default.
    out, err, status = shell("mkdir gone; cd gone; rmdir ../gone; TMPDIR=#{@work.dump} SDB_DIR=logs ruby -w #{@work.dump}/app.rb")
    assert_predicate status, :success?, err
    assert_equal 1, err.scan("sdb: the directory logs: there is no working directory; using the default directory").size, err
    assert_match(/\Arunning\n/, out)
  end

  def test_the_command_line_in_a_directory_that_is_gone
    shell!("ruby -e 'sleep 0.05'")
    rings = Dir[File.join(@rings, "*")].map(&:dump).join(" ")
    out = shell!("mkdir gone; cd gone; rmdir ../gone; sdb ls --json && sdb functions #{rings} --json && sdb status #{rings} --json")
    assert_equal [1, 1, 1], out.lines.map { |line| JSON.parse(line).fetch("schema") }
    out, err, status = shell("mkdir gone; cd gone; rmdir ../gone; sdb functions no-such-log")
    assert_equal ["", 1, 1], [out, status.exitstatus, err.lines.size], err
  end

  def test_a_home_that_is_unset_or_not_there
    ["unset HOME", "HOME=/nowhere"].each do |home|
      out, err, status = shell("#{home}; SDB_DIR='~/logs' ruby -w -e '#{STATUS}'")
      assert_predicate status, :success?, err
      assert_match(/\A(running\n|disabled\n.+\n)/, out, home)
      assert_operator err.lines.size, :<=, 1, err
    end
    assert_match(/\A\{"schema":1/, shell!("unset HOME; sdb status --json", env: { "SDB_DIR" => stopped_log }))
  end

  def stopped_log
    shell!("ruby -e 1")
    @rings
  end

  # In a mount namespace of its own: no temporary directory, then nothing that can be written.
  def test_no_temporary_directory_and_a_read_only_root
    skip "no mount namespaces here" unless system("unshare", "--mount", "true", err: File::NULL)

    write("app.rb", "puts defined?(Sdb) && Sdb.auto?.inspect\n#{STATUS}\n")
    { "mount -t tmpfs -o ro,size=1m none /tmp" => "no /tmp", "mount -o remount,bind,ro / && mount -t tmpfs -o ro none /tmp" => "read-only" }.each do |command, name|
      out, err, status = without_tmp(command)
      assert_predicate status, :success?, "#{name}: #{err}"
      lines = out.lines.map(&:chomp)
      assert_equal %w[false disabled], lines.first(2), "#{name}: #{out}#{err}"
      assert_includes lines, "Sdb::Recorder"
      assert_operator lines[2].size, :>, 10, "#{name}: no reason"
      assert_operator err.lines.grep(/sdb: not recording: /).size, :>=, 1, err
    end
  end

  # The gem and the app are in /tmp: copies beside it, so that they are there without it.
  def without_tmp(command)
    place = Dir.mktmpdir("sdb-without-tmp", ROOT + "/tmp")
    FileUtils.cp_r([@gem_home, File.join(@work, "app.rb")], place)
    folder = Dir[File.join(place, "gems/gems/sdb-*/lib/sdb/env")].first
    env = { "RUBYOPT" => "-rsdb_auto", "RUBYLIB" => folder, "SDB_DIR" => nil, "HOME" => nil, "TMPDIR" => nil, "SDB" => nil }
    Open3.capture3(env, "unshare", "--mount", "sh", "-c", "#{command} && exec ruby -w app.rb", chdir: place)
  ensure
    FileUtils.rm_rf(place)
  end

  # C42.
  TOOLS = [
    "sdb ls", "sdb status --json", "sdb status", "bundle version", "bundle config", "bundle install --local --quiet", "bundle exec rake -T", "bundle exec sdb ls",
    "gem env version", "gem list rake", "rake -T", "rake --tasks", "rake -P", "rake --version", "irb --version", "erb --version"
  ].freeze

  def test_tools_leave_no_log_answer_about_others_and_push_nothing_out
    write("Gemfile", %(source "https://rubygems.org"\ngem "rake"\ngem "sdb"\n))
    write("Rakefile", "desc 'work'\ntask(:work) { 1 }\n")
    shell("bundle install --local --quiet", with_sdb: false)
    out, = shell("ruby -e '$stdout.sync = true; def worker = sleep(0.1); worker; puts $$; Process.kill(:KILL, $$)'", env: { "SDB_KEEP" => "2" })
    before = Dir[File.join(@rings, "*")]
    assert_equal [out.to_i], before.map { |path| Sdb::Ring.read(path).pid }
    TOOLS.each { |tool| shell("#{tool} >/dev/null", env: { "SDB_KEEP" => "2" }) }
    assert_equal before, Dir[File.join(@rings, "*")]
    assert_equal out.to_i, JSON.parse(shell!("sdb status --json")).fetch("pid")
    # with the gem in the bundle and SDB=1 likewise
    shell("bundle exec rake -T >/dev/null; bundle exec sdb ls >/dev/null", env: { "SDB" => "1", "RUBYOPT" => "-rbundler/setup -rsdb" })
    assert_equal before, Dir[File.join(@rings, "*")]
  end

  def test_what_works_for_its_living_is_recorded
    write("Rakefile", "task(:work) { 1 }\n")
    shell!("rake work")
    shell!("sdb record --dir #{@rings.dump} -- rake --version >/dev/null 2>&1", with_sdb: false)
    assert_equal ["rake --version", "rake work"], recorded.map { |line| line[/rake .*/] }.sort
  end

  def test_which_programs_are_tools
    require "sdb/program"
    tools = ["bundle", "bundle install", "/usr/bin/bundle3.1 config", "bundle --verbose outdated", "bundle exec", "bundle exec ruby x.rb", "bundle exec sdb slow",
             "bundle e rake -T", "gem install x", "sdb", "rake -T", "rake --tasks x", "rake sdb:slow", "rake sdb:slow sdb:request[1]", "irb"]
    programs = ["ruby", "app.rb", "puma", "bundle exec puma -C x", "bundle exec --keep-file-descriptors rake test", "bundle ex rails server", "rake", "rake test",
                "rake -j 4 test", "rake sdb:slow test", "rails console", "sidekiq", "-e", "sdb_worker", "bundler exec unicorn"]
    { tools => true, programs => false }.each do |lines, expected|
      lines.each do |line|
        name, *words = line.sub("3.1", RUBY_VERSION[/\A\d+\.\d+/]).split
        assert_equal expected, Sdb::Program.tool?(name, words, {}), line
      end
    end
    refute Sdb::Program.tool?("sdb", [], { "SDB_RECORD" => "1" })
  end

  def test_the_status_names_each_jit
    skip "this Ruby has no JIT to switch on" unless system(RbConfig.ruby, "--yjit", "-e", "exit RubyVM::YJIT.enabled?", err: File::NULL)

    assert_includes shell!("ruby --yjit -e 'puts Sdb.status[:ruby]'"), "+YJIT"
  end

  # No Ruby here has it: its switch stands in.
  def test_the_status_names_zjit
    code = "module RubyVM::ZJIT; def self.enabled? = true; end; puts Sdb.status[:ruby]"
    assert_equal "#{RUBY_VERSION} +ZJIT\n", shell!("ruby -e '#{code}'")
  end

  # Ruby 4.0's switch stands in likewise.
  def test_boxes_are_a_warning_and_a_line
    write("box.rb", "module Ruby; end\nmodule Ruby::Box; def self.enabled? = true; end\n")
    out, err, = shell("ruby -r./box -rsdb/auto -e 'puts Sdb.status[:warnings]'", with_sdb: false)
    assert_match(/\ARUBY_BOX=1: .*spans/, out)
    assert_equal "sdb: #{out}", err
  end
end
