# frozen_string_literal: true

require_relative "test_helper"
require "support/cli_helper"
require "sdb/cli/filters"

class CLIHelpTest < Minitest::Test
  include CLIHelper

  # What the contract names, and what it does not leave to chance.
  COMMANDS = %w[record ls status top stacks dump slow request flamegraph tree functions lines callers threads export
                doctor].freeze
  ANALYSING = %w[functions lines threads tree flamegraph callers top stacks slow request export].freeze
  FILTERS = %w[--from --to --last --pid --thread --endpoint --request --trace --tag --state --min-duration --percentile
               --metric --focus --hide --only-app].freeze
  OWN = { "record" => %w[-o], "flamegraph" => %w[-o], "export" => %w[-o --lines], "slow" => %w[--limit] }.freeze

  def flags(name) = Sdb::CLI.command(name).new(out: StringIO.new, err: StringIO.new).flags

  def test_every_command_of_the_contract_is_there
    assert_empty COMMANDS - Sdb::CLI.commands.map(&:name)
  end

  def test_every_command_explains_itself_with_examples
    Sdb::CLI.commands.each do |entry|
      [[entry.name, "--help"], [entry.name, "-h"], ["help", entry.name]].each do |words|
        answer = sdb!(*words)
        assert_empty answer.err
        assert_match(/^Usage: sdb #{entry.name}/, answer.out)
        assert_match(/^Examples:\n  (eval "\$\()?sdb #{entry.name}/, answer.out)
        assert_includes answer.out, "--json"
      end
    end
  end

  def test_every_documented_filter_is_a_flag_of_every_analysing_command
    ANALYSING.each { |name| assert_empty FILTERS - flags(name), name }
  end

  def test_every_documented_flag_of_a_single_command_exists
    OWN.each { |name, own| assert_empty own - flags(name), name }
    Sdb::CLI.commands.each { |entry| assert_includes flags(entry.name), "--json" }
  end

  def test_no_short_help_is_wider_than_a_page
    Sdb::CLI.commands.each do |entry|
      sdb!("help", entry.name).out.each_line { |line| assert_operator line.chomp.length, :<=, 118, line }
    end
  end

  def test_sdb_alone_teaches_with_examples_and_lists_all_commands
    [[], ["--help"], ["-h"], ["help"]].each do |words|
      answer = sdb!(*words)
      assert_includes answer.out, "sdb record -- ruby script.rb"
      COMMANDS.each { |name| assert_match(/^  #{name} /, answer.out) }
    end
  end

  def test_the_version_is_the_gems
    assert_equal "sdb #{Sdb::VERSION}\n", sdb!("--version").out
  end

  def test_a_wrong_command_names_the_nearest_on_stderr_and_exits_with_2
    answer = sdb("funktions")
    assert_equal 2, answer.status
    assert_empty answer.out
    assert_includes answer.err, "Did you mean functions?"
    assert_equal 2, sdb("help", "funktions").status
    assert_equal 2, sdb("--lst").status
  end

  def test_a_wrong_flag_names_the_nearest
    answer = sdb("functions", "--metrik", "cpu")
    assert_equal 2, answer.status
    assert_includes answer.err, "Did you mean --metric?"
    assert_includes answer.err, "sdb help functions"
    assert_includes sdb("status", "--jsno").err, "--json"
  end

  def test_a_missing_value_and_missing_arguments_are_wrong_usage
    [%w[functions --metric], %w[lines], %w[request], %w[callers], %w[export], %w[record]].each do |words|
      answer = sdb(*words)
      assert_equal 2, answer.status, words.join(" ")
      assert_empty answer.out
      refute_empty answer.err
    end
  end

  def test_a_reader_that_leaves_ends_it_quietly
    exe = File.expand_path("../exe/sdb", __dir__)
    reader, writer = IO.pipe
    reader.close
    error_reader, error_writer = IO.pipe
    pid = spawn(RbConfig.ruby, exe, "help", "functions", out: writer, err: error_writer)
    [writer, error_writer].each(&:close)
    status = Process.wait2(pid).last
    assert_empty error_reader.read
    assert_predicate status, :success?
  end
end
