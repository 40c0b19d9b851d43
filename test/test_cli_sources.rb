# frozen_string_literal: true

require_relative "test_helper"
require "support/cli_helper"

# A log may name any file: `sdb lines` shows source only from below directories that its user meant.
class TestCLISources < Minitest::Test
  include CLIHelper

  def setup
    @dir = File.realpath(Dir.mktmpdir("sdb-sources"))
    %w[shop/app copy/app outside].each { |name| FileUtils.mkdir_p(File.join(@dir, name)) }
    { "shop/app/a.rb" => "here", "copy/app/a.rb" => "a copy", "outside/secret.rb" => "secret" }.each do |name, text|
      File.write(File.join(@dir, name), "1\n2 #{text}\n")
    end
    File.symlink(File.join(@dir, "outside/secret.rb"), File.join(@dir, "shop/app/link.rb"))
  end

  def teardown
    FileUtils.rm_rf(@dir)
  end

  def test_source_comes_from_below_the_current_directory_only
    assert_includes lines("shop/app/a.rb"), "2 here"
    refute_includes lines("shop/app/a.rb", cwd: "copy"), "2 here"
    refute_includes lines("outside/secret.rb"), "secret\n"
  end

  def test_neither_links_nor_dots_lead_out_of_it
    refute_match(/2 secret/, lines("shop/app/link.rb"))
    refute_match(/2 secret/, lines("shop/../outside/secret.rb"))
    refute_match(/2 secret/, lines("shop/app/link.rb", "--source", File.join(@dir, "shop")))
  end

  def test_source_allows_other_directories_and_copies_of_the_app_in_them
    assert_includes lines("outside/secret.rb", "--source", File.join(@dir, "outside")), "2 secret"
    assert_includes lines("shop/app/a.rb", "--source", File.join(@dir, "copy")), "2 a copy"
  end

  def test_the_whole_disk_is_no_directory_of_the_users
    refute_includes lines("shop/app/a.rb", cwd: "/"), "2 here"
  end

  private

  def lines(name, *options, cwd: "shop")
    path = File.join(@dir, name)
    root = File.join(@dir, "shop")
    ring = RingEncoder.write(File.join(@dir, "x.sdb"), pid: 11, app_root: root) do
      thread :main, tid: 11, main: true
      code :a, "A#a", path: path, line: 1
      at 0, main: running("a:2")
      finish 10
    end
    Dir.chdir(File.expand_path(cwd, @dir)) { sdb!("lines", path, ring, *options).out }
  end
end
