# frozen_string_literal: true

require_relative "test_helper"
require "open3"
require "support/cli_helper"

# What sdb record does around the command; that there is a log in the end is for test/integration.
class CLIRecordTest < Minitest::Test
  include CLIHelper

  EXE = File.expand_path("../exe/sdb", __dir__)

  def setup
    @dir = Dir.mktmpdir
  end

  def teardown
    FileUtils.rm_rf(@dir)
  end

  def record(*words, env: {}, stdin: "")
    Open3.capture3({ "TMPDIR" => @dir }.merge(env), RbConfig.ruby, EXE, "record", *words, stdin_data: stdin)
  end

  def test_output_input_and_exit_status_pass_through
    out, err, status = record("--", "sh", "-c", "cat; echo problem >&2; exit 7", stdin: "hello\n")
    assert_equal "hello\n", out
    assert_match(/^problem$/, err)
    assert_equal 7, status.exitstatus
  end

  def test_options_behind_the_command_are_the_commands
    out, = record("echo", "--help", "-o", "x")
    assert_equal "--help -o x\n", out
  end

  def test_a_command_that_a_signal_ended_gives_what_a_shell_gives
    assert_equal 128 + Signal.list["TERM"], record("sh", "-c", "kill -TERM $$").last.exitstatus
  end

  def test_a_command_that_cannot_be_run_is_126_or_127_and_says_so
    out, err, status = record("nosuch-command")
    assert_equal [127, ""], [status.exitstatus, out]
    assert_includes err, "cannot run nosuch-command: No such file"
    assert_equal 126, record(@dir).last.exitstatus
  end

  def test_a_command_word_is_never_given_to_a_shell
    assert_equal 127, record("echo hello; exit 3").last.exitstatus
  end

  def test_the_environment_reaches_ruby_and_keeps_what_was_there
    out, = record("--interval", "5ms", "--ring", "8M", "--max-cpu", "0.1", "--service", "shop", "--dir", "#{@dir}/a b",
                  "--", "sh", "-c", 'printf "%s\n" "$RUBYOPT" "$RUBYLIB" "$SDB" "$SDB_DIR" "$SDB_INTERVAL" "$SDB_RING" ' \
                                    '"$SDB_MAX_CPU" "$SDB_SERVICE"',
                  env: { "RUBYOPT" => "-W0", "RUBYLIB" => "/some/lib", "SDB" => "0" })
    folder = File.expand_path("../lib/sdb/env", __dir__)
    assert_equal ["-rsdb_auto -W0", "#{folder}:/some/lib", "1", "#{@dir}/a b", "5ms", "8M", "0.1", "shop"], out.split("\n")
  end

  def test_a_wrong_option_value_is_refused_before_the_command_runs
    out, err, status = record("--interval", "fast", "--", "echo", "ran")
    assert_equal [2, ""], [status.exitstatus, out]
    assert_includes err, "not a time"
  end

  def test_a_command_that_is_no_ruby_leaves_no_directory_behind_and_is_told_about
    _, err, status = record("true")
    assert_equal 0, status.exitstatus
    assert_includes err, "no log was written"
    assert_empty Dir.glob("#{@dir}/sdb-*/record-*")
  end

  def test_signals_reach_the_command
    %w[TERM INT HUP USR1 USR2].each do |signal|
      script = "trap 'echo got #{signal}; exit 3' #{signal}; echo ready; while :; do sleep 0.01; done"
      Open3.popen3({ "TMPDIR" => @dir }, RbConfig.ruby, EXE, "record", "sh", "-c", script) do |_, out, _, thread|
        assert_equal "ready\n", out.gets
        Process.kill(signal, thread.pid)
        assert_equal "got #{signal}\n", out.gets
        assert_equal 3, thread.value.exitstatus
      end
    end
  end
end
