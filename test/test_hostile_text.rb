# frozen_string_literal: true

require_relative "test_helper"
require "support/cli_helper"

# A log may have been written by anybody. Whatever stands in its names, no command prints anything that drives a
# terminal, forges a line or turns text around.
class TestHostileText < Minitest::Test
  include CLIHelper

  EVIL = "\e]0;owned\a\e[2J\nforged: line\r\u202Egnp\u2028\u061C\u009b31m\x02\t\u200B\uFEFF\u{E0041}"
  UNSEEN = /[\p{Cc}\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/
  COMMANDS = [%w[functions], %w[tree], %w[tree --lines], %w[threads], %w[slow], ["request", "id 1"], ["request", "id 1", "--all"],
              ["request", "id 1", "--runs"], %w[callers /Foo/], ["lines", "/app/#{EVIL}.rb"], %w[stacks], %w[top --count 1],
              %w[ls], %w[status], %w[oom show], ["functions", "--focus", "work#{Regexp.escape(EVIL[0])}"],
              ["functions", "--endpoint", "A#b#{EVIL}"], ["slow", "--tag", "k#{EVIL}=v#{EVIL}"], %w[export collapsed], %w[export collapsed --lines]].freeze

  def setup
    @dir = Dir.mktmpdir("sdb-hostile")
    evil = EVIL
    @ring = RingEncoder.write(File.join(@dir, "x.sdb"), pid: 11, service: "shop#{evil}", argv: ["ruby#{evil}", "a#{evil}"], ruby: "3.4#{evil}",
                                                        tags: { "worker" => evil }) do
      code :evil, "Foo#work#{evil}", path: "/app/#{evil}.rb", line: 1, class_name: evil
      code :c, "C#read#{evil}"
      thread :main, tid: 11, main: true
      thread :w, tid: 12, name: "w#{evil}"
      at 0, main: running("evil:3 c"), w: gvl_wait("evil:4")
      at 10, main: blocked("evil:3 c"), w: running("evil:5")
      span 0..40, :w, id: "id 1", kind: "kind#{evil}", name: "A#b#{evil}", tags: { "k#{evil}" => "v#{evil}" }
      span 0..nil, :main, id: "open#{evil}", kind: evil, name: "open#{evil}"
      mark 5, "mark#{evil}"
      finish 50
      status state: :live, reason: "why#{evil}"
    end
  end

  def teardown
    FileUtils.rm_rf(@dir)
  end

  COMMANDS.each do |command|
    define_method("test_#{command.join("_").gsub(/[^A-Za-z0-9]+/, "_")}_prints_no_character_that_is_not_seen") do
      answer = sdb(*command, @ring)
      assert_equal 0, answer.status, answer.err
      [answer.out, answer.err].each do |text|
        bad = text.lines(chomp: true).grep(UNSEEN)
        assert_empty bad
        assert_empty text.lines.grep(/\Aforged/)
      end
      refute_empty answer.out
    end
  end

  def test_on_a_terminal_only_our_own_colours_are_painted
    COMMANDS.first(8).each do |command|
      out = FakeTerminal.new(100)
      with_env("NO_COLOR" => nil, "TERM" => "xterm") { sdb(*command, @ring, out: out) }
      rest = out.string.gsub(/\e\[(?:0|[1-9]|3[1-6])(?:;\d+)?m/, "")
      assert_empty rest.lines(chomp: true).grep(UNSEEN), command.join(" ")
      refute_includes out.string, "owned\a"
    end
  end

  def test_what_a_user_typed_is_shown_as_harmlessly
    [["functi\e[2Jons"], ["functions", "--fo\e[2Jcus"], ["functions", "no\e[2Jfile"], ["request", "x\e[2J", @ring]].each do |arguments|
      answer = sdb(*arguments)
      refute_equal 0, answer.status
      refute_includes answer.err, "\e"
    end
  end

  def test_json_has_the_names_as_they_are
    assert_equal "Foo#work#{EVIL}", sdb!("tree", @ring, "--json").json["roots"].first["name"]
  end
end
