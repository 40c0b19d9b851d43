# frozen_string_literal: true

require "test_helper"
require "support/case_helper"

# Case C47: names in any encoding are readable UTF-8 in the log and in answers.
class TestC47Encodings < Minitest::Test
  include CaseHelper

  # Where names come from: source files, threads, spans, tags, marks, symbols, classes.
  PROGRAM = <<~'RUBY'
    def named(name) = Thread.new { Thread.current.name = name; yield }
    def busy(seconds = 0.3)
      stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      1 while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
    end
    load ENV.fetch("SJIS")
    named("スレッド".encode("EUC-JP")) { Kernel.send(:run_sjis) }.join
    Sdb.span("réservé".encode("ISO-8859-1"), kind: "tâche".encode("Windows-1252"), id: "nº7".encode("ISO-8859-1"),
             "clé".encode("UTF-16LE") => "valeur é".encode("UTF-16BE")) { busy(0.05) }
    Sdb.span("bin\xC3\xA9".b, "bad" => "\xFFx".dup.force_encoding("UTF-8"), "jp" => "\x1b$B4A;z\x1b(B".dup.force_encoding("ISO-2022-JP"),
             "undefined" => "a\x81b".dup.force_encoding("Windows-1252"), "seven" => "+AOk-".dup.force_encoding("UTF-7")) { busy(0.05) }
    Sdb.tag("größe".encode("ISO-8859-15") => :"çé") { busy(0.05) }
  RUBY

  SOURCE = <<~RUBY
    # encoding: Windows-31J
    class C表示
      def 計算 = [1].each { busy }
      define_method(:動的) { 計算 }
    end
    def run_sjis = C表示.new.動的
  RUBY

  def test_names_in_other_encodings_are_readable
    file = File.join(@dir, "sjis.rb")
    File.binwrite(file, SOURCE.encode("Windows-31J"))
    profile = log_of(program!(PROGRAM, env: { "SJIS" => file }))

    names = names(profile)
    ["C表示#計算", "block in C表示#計算", "C表示#動的"].each { |name| assert_includes names, name }
    assert_includes profile.thread_infos.map(&:name), "スレッド"
    spans = profile.spans.spans.to_h { |span| [span.name, span] }
    assert_equal ["tâche", "nº7", { "clé" => "valeur é" }], spans.fetch("réservé").then { |s| [s.kind, s.id, s.tags] }
    assert_equal({ "bad" => "\uFFFDx", "jp" => "漢字", "undefined" => "a\uFFFDb", "seven" => "+AOk-" }, spans.fetch("biné").tags)
    refute_empty profile.functions(tag: { "größe" => "çé" }).functions
  end
end
