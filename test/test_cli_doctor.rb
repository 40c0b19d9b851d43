# frozen_string_literal: true

require_relative "test_helper"
require "open3"
require "support/cli_helper"

# sdb doctor in a Ruby of its own: it examines the process that it runs in.
class CLIDoctorTest < Minitest::Test
  EXE = File.expand_path("../exe/sdb", __dir__)

  def doctor(*words, env: {})
    Open3.capture3(env, RbConfig.ruby, EXE, "doctor", "--quick", *words)
  end

  def test_the_document_and_the_exit_status_agree
    out, err, status = doctor("--json")
    assert_empty err
    document = JSON.parse(out)
    assert_equal [1, RUBY_DESCRIPTION, RUBY_PLATFORM], document.values_at("schema", "ruby", "platform")
    assert_equal document["ok"] ? 0 : 1, status.exitstatus
    document["checks"].each { |check| assert_empty %w[name ok detail fix] - check.keys }
    assert_equal document["ok"], document["checks"].none? { |check| check["ok"] == false }
  end

  def test_text_has_a_line_for_each_check_and_the_layout_as_a_table
    document = JSON.parse(doctor("--json").first)
    out, = doctor
    document["checks"].each { |check| assert_includes out, ": #{check["detail"]}\n" }
    document["layout"].each { |row| assert_match(/^ *#{row["table"]} .*#{Regexp.escape(row["field"])}$/, out) }
  end

  def test_what_is_wrong_comes_with_its_fix
    out, _, status = doctor(env: { "SDB_DIR" => __FILE__ })
    assert_equal 1, status.exitstatus
    assert_match(/^NO  ring directory: .*\n      fix: /, out)
    assert_includes out, "cannot be profiled here"
  end
end
