# frozen_string_literal: true

require "test_helper"
require "open3"

# What the compiler and linker can do against memory errors is on in everything that is built here.
class TestHardening < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  LIBRARIES = Dir["#{ROOT}/lib/sdb/{*/,}sdb_{recorder,reader}.so"].freeze
  DAEMON = "#{ROOT}/bpf/.output/sdb-oomd"

  def setup
    skip "readelf is not installed (Debian: binutils)" unless system("readelf", "--version", out: File::NULL, err: File::NULL)
    skip "a build with sanitizers has those instead" unless ENV["SDB_SANITIZE"].to_s.empty?
  end

  def test_libraries_resolve_all_names_at_once_and_then_write_protect_the_tables
    refute_empty LIBRARIES
    LIBRARIES.each { |path| assert_relro(path) }
  end

  def test_the_recorder_checks_its_stack_and_its_copies
    LIBRARIES.grep(/recorder/).each do |path|
      symbols = readelf("--dyn-syms", path)
      assert_match(/__stack_chk_fail/, symbols, path)
      assert_match(/__\w+_chk@/, symbols, path)
    end
  end

  def test_the_daemon_has_the_same_and_lies_at_an_address_nobody_knows
    skip "no sdb-oomd: run rake bpf" unless File.executable?(DAEMON)
    assert_relro(DAEMON)
    assert_match(/FLAGS_1.*PIE/, readelf("--dynamic", DAEMON))
    assert_match(/__stack_chk_fail/, readelf("--dyn-syms", DAEMON))
    assert_match(/__(?:v?snprintf|memcpy)_chk/, readelf("--dyn-syms", DAEMON))
  end

  private

  def assert_relro(path)
    assert_match(/GNU_RELRO/, readelf("--segments", path), path)
    assert_match(/FLAGS.*\bNOW\b/, readelf("--dynamic", path), path)
    assert_match(/GNU_STACK.*\sRW\s/, readelf("--segments", path), path)
  end

  def readelf(*arguments) = Open3.capture2("readelf", "--wide", *arguments).first
end
