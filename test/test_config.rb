# frozen_string_literal: true

require_relative "test_helper"
require "sdb/config"

class ConfigTest < Minitest::Test
  def resolve(env = {}, cwd: "/nowhere", **arguments)
    Sdb::Config.resolve(env: env, cwd: cwd, **arguments)
  end

  def test_without_anything_the_defaults_hold_and_nothing_is_warned
    config = resolve
    assert_equal 1_000_000, config.interval_ns
    assert_equal 64 << 20, config.ring_bytes
    assert_in_delta 0.05, config.max_cpu
    assert_nil config.service
    assert_empty config.tags
    assert_empty config.warnings
    assert_predicate config, :frozen?
  end

  def test_every_variable_is_read_in_every_unit_people_write
    assert_equal 1_000_000, resolve({ "SDB_INTERVAL" => "0.001" }).interval_ns
    assert_equal 1_000_000, resolve({ "SDB_INTERVAL" => "1ms" }).interval_ns
    assert_equal 100_000, resolve({ "SDB_INTERVAL" => "100us" }).interval_ns
    assert_equal 67_108_864, resolve({ "SDB_RING" => "67108864" }).ring_bytes
    assert_equal 8 << 20, resolve({ "SDB_RING" => "8M" }).ring_bytes
    assert_equal 8 << 20, resolve({ "SDB_RING" => "8MiB" }).ring_bytes
    assert_equal 1 << 30, resolve({ "SDB_RING" => "1g" }).ring_bytes
    assert_in_delta 0.02, resolve({ "SDB_MAX_CPU" => "0.02" }).max_cpu
    assert_in_delta 0.02, resolve({ "SDB_MAX_CPU" => "2%" }).max_cpu
    assert_equal 7, resolve({ "SDB_KEEP" => "7" }).keep
    assert_equal "shop", resolve({ "SDB_SERVICE" => "shop" }).service
    assert_equal({ "k" => "v", "k2" => "v2" }, resolve({ "SDB_TAGS" => "k=v,k2=v2" }).tags)
    assert_equal "/var/rings", resolve({ "SDB_DIR" => "/var/rings" }).dir
    assert_equal "/nowhere/rings", resolve({ "SDB_DIR" => "rings" }).dir
  end

  def test_a_wrong_variable_gives_the_default_and_one_line_that_names_it
    config = resolve({ "SDB_INTERVAL" => "abc" })
    assert_equal 1_000_000, config.interval_ns
    assert_equal ["SDB_INTERVAL=abc: not a time; using 0.001"], config.warnings
  end

  def test_each_kind_of_nonsense_is_refused_one_line_each
    { "SDB_INTERVAL" => ["0", "-1", "1 fortnight", "1e9"], "SDB_RING" => ["big", "1k", "-5", "99999G"],
      "SDB_MAX_CPU" => ["lots", "-0.1", "7", "NaN"], "SDB_KEEP" => ["-1", "a", "1.5"],
      "SDB_TAGS" => ["novalue", "=x"], "SDB_DIR" => ["a" * 2000] }.each do |name, values|
      values.each do |value|
        config = resolve({ name => value })
        assert_equal 1, config.warnings.size, "#{name}=#{value}"
        assert config.warnings.first.start_with?("#{name}="), config.warnings.first
        assert_operator config.warnings.first.size, :<, 250
        assert_equal resolve.to_h.merge(warnings: config.warnings), config.to_h
      end
    end
  end

  def test_a_variable_that_is_not_valid_utf8_is_still_only_a_warning
    assert_equal 1, resolve({ "SDB_INTERVAL" => "\xff\xfe".b }).warnings.size
  end

  def test_an_empty_variable_counts_as_unset
    assert_empty resolve({ "SDB_INTERVAL" => "", "SDB_RING" => "", "SDB_DIR" => "" }).warnings
  end

  def test_a_ruby_argument_wins_over_the_environment
    config = resolve({ "SDB_INTERVAL" => "5ms", "SDB_RING" => "nonsense" }, interval: 0.0001, ring: 8 << 20)
    assert_equal 100_000, config.interval_ns
    assert_equal 8 << 20, config.ring_bytes
    assert_empty config.warnings
  end

  def test_a_wrong_ruby_argument_raises_and_says_what_to_give
    { interval: [0, "1ms", nil, 100, Float::NAN], ring: [1, "64M", nil], max_cpu: [-1, 2, "x"],
      tags: ["a=b", nil, { "" => 1 }], keep: [-1, "3"], dir: [3, "a\0b", ""], service: ["", 3] }.each do |name, values|
      values.each do |value|
        error = assert_raises(ArgumentError, "#{name}: #{value.inspect}") { resolve(name => value) }
        assert_match(/\A#{name}: /, error.message)
        assert_includes error.message, " is not "
      end
    end
  end

  def test_an_unknown_ruby_argument_raises_and_lists_what_there_is
    error = assert_raises(ArgumentError) { resolve(intervall: 1) }
    assert_includes error.message, "interval:"
  end

  def test_tags_become_frozen_strings
    tags = resolve(tags: { customer: 7 }).tags
    assert_equal({ "customer" => "7" }, tags)
    assert tags.frozen? && tags.each_value.all?(&:frozen?)
  end

  def test_the_directory_defaults_to_the_rails_app_else_to_the_users_own_under_tmp
    Dir.mktmpdir do |dir|
      assert_equal File.join(Dir.tmpdir, "sdb-#{Process.euid}"), resolve(cwd: dir).dir
      Dir.mkdir File.join(dir, "config")
      File.write File.join(dir, "config", "application.rb"), ""
      File.write File.join(dir, "config.ru"), ""
      assert_equal File.join(dir, "tmp", "sdb"), resolve(cwd: dir).dir
    end
  end

  def test_durations_of_the_command_line_add_up
    assert_equal 5_400_000_000_000, Sdb::Units.duration_ns("1h30m")
    assert_equal 300_000_000, Sdb::Units.duration_ns("300ms")
    assert_raises(ArgumentError) { Sdb::Units.duration_ns("10 parsecs") }
    assert_raises(ArgumentError) { Sdb::Units.duration_ns("") }
  end
end
