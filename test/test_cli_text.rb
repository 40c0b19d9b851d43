# frozen_string_literal: true

require_relative "test_helper"
require "support/cli_helper"
require "sdb/cli/losses"
require "sdb/cli/table"
require "sdb/cli/terminal"

class CLITextTest < Minitest::Test
  Text = Sdb::Text

  def test_durations_have_three_figures_and_a_unit
    { nil => "-", 0 => "0", 7 => "7 ns", 1500 => "1.50 us", 999_400 => "999 us", 999_600 => "1.00 ms",
      12_345_678 => "12.3 ms", 999_600_000 => "1.00 s", 119_000_000_000 => "119 s", 120_000_000_000 => "2m 0s",
      90_061_000_000_000 => "1d 1h", -1500 => "-1.50 us" }.each do |ns, text|
      assert_equal text, Text.duration(ns)
    end
  end

  def test_counts_bytes_and_shares_read_well
    assert_equal "1,234,567", Text.count(1_234_567)
    assert_equal "64.0 MiB", Text.bytes(64 << 20)
    assert_equal "12 B", Text.bytes(12)
    assert_equal "33.3%", Text.percent(1, 3)
    assert_equal "-", Text.percent(0, 0)
    assert_equal ["1 thread", "2 threads", "0 threads"], [1, 2, 0].map { |n| Text.plural(n, "thread") }
  end

  def test_no_control_character_of_a_name_gets_out
    assert_equal 'Foo\\e[31m\\n', Text.clean("Foo\e[31m\n")
    assert_equal "a\uFFFDb", Text.clean("a\xFFb")
    refute_includes Text.clean("x\u202Ey"), "\u202E"
    assert_equal "Übung#größe", Text.clean("Übung#größe".b)
  end

  def test_places_need_a_path
    assert_equal "/a.rb:3", Text.place("/a.rb", 3)
    assert_equal "/a.rb", Text.place("/a.rb", 0)
    assert_equal "", Text.place("", 0)
  end

  def test_the_nearest_name_is_found_and_a_far_one_is_not
    names = %w[functions flamegraph lines threads]
    { "funktions" => "functions", "thread" => "threads", "fnuctions" => "functions", "flame" => "flamegraph",
      "lnies" => "lines", "FUNCTIONS" => "functions", "zebra" => nil, "x" => nil }.each do |word, name|
      if name.nil?
        assert_nil Sdb::CLI::Nearest.find(word, names), word
      else
        assert_equal name, Sdb::CLI::Nearest.find(word, names), word
      end
    end
  end

  def test_colour_needs_a_terminal_and_no_no_color
    terminal = CLIHelper::FakeTerminal.new(80)
    Sdb::CLI::Output.wrap(terminal).puts(Sdb::CLI::Terminal.new(terminal, env: {}).paint("x", :bold, :red))
    assert_equal "\e[1;31mx\e[0m\n", terminal.string
    assert_equal "x", Sdb::CLI::Terminal.new(terminal, env: { "NO_COLOR" => "1" }).paint("x", :bold)
    assert_equal "x", Sdb::CLI::Terminal.new(terminal, env: { "TERM" => "dumb" }).paint("x", :bold)
    assert_equal "x", Sdb::CLI::Terminal.new(StringIO.new, env: {}).paint("x", :bold)
  end

  def test_line_drawing_is_ascii_where_the_locale_is_not_utf8
    assert_equal "└─ ", Sdb::CLI::Terminal.new(StringIO.new, env: { "LANG" => "de_DE.UTF-8" }).draw(:last)
    assert_equal "`- ", Sdb::CLI::Terminal.new(StringIO.new, env: { "LANG" => "C" }).draw(:last)
    assert_equal "`- ", Sdb::CLI::Terminal.new(StringIO.new, env: { "LC_ALL" => "C", "LANG" => "C.UTF-8" }).draw(:last)
  end

  def table(out)
    table = Sdb::CLI::Table.new(Sdb::CLI::Terminal.new(out, env: { "LANG" => "C.UTF-8", "TERM" => "dumb" }),
                                [["self", :right], ["name", :left]])
    table.row("1.00 s", "Foo#a_very_long_method_name").row("12 ms", "Bar#b")
    table.print(out)
    out.string
  end

  def test_a_table_is_aligned_and_never_cut_when_piped
    assert_equal "  self  name\n1.00 s  Foo#a_very_long_method_name\n 12 ms  Bar#b\n", table(StringIO.new)
  end

  def test_a_table_is_cut_to_the_terminal
    assert_equal "  self  name\n1.00 s  Foo#a_ver…\n 12 ms  Bar#b\n", table(CLIHelper::FakeTerminal.new(18))
  end

  def test_of_a_name_and_its_place_the_begin_of_the_path_goes_first
    terminal = Sdb::CLI::Terminal.new(CLIHelper::FakeTerminal.new(80), env: { "LANG" => "C.UTF-8" })
    { 40 => "Foo#bar  /var/lib/gems/foo/lib/foo.rb:12", 30 => "Foo#bar  …ms/foo/lib/foo.rb:12",
      17 => "Foo#bar", 5 => "Foo#…" }.each do |room, text|
      assert_equal text, terminal.fit_place("Foo#bar", "/var/lib/gems/foo/lib/foo.rb:12", room)
    end
    assert_equal "…/foo.rb:12", terminal.fit_place("", "/var/lib/gems/foo/lib/foo.rb:12", 11)
    assert_equal "Foo#bar", terminal.fit_place("Foo#bar", "", 7)
  end

  def test_a_note_is_wrapped_at_words
    terminal = Sdb::CLI::Terminal.new(CLIHelper::FakeTerminal.new(30), env: { "LANG" => "C.UTF-8" })
    assert_equal ["  waited 44.3 ms for the GVL", "    held by Foo#bar", "    /a/very/long/path/that/ha…"],
                 terminal.wrap("  waited 44.3 ms for the GVL held by Foo#bar /a/very/long/path/that/has/no/end.rb:1")
    assert_equal ["  short"], terminal.wrap("  short")
    assert_equal ["  #{"long " * 20}"], Sdb::CLI::Terminal.new(StringIO.new).wrap("  #{"long " * 20}")
  end

  def test_columns_of_the_environment_are_the_width_of_a_terminal_and_of_nothing_else
    narrow = { "COLUMNS" => "60" }
    assert_equal [60, 80], [narrow, {}].map { |env| Sdb::CLI::Terminal.new(CLIHelper::FakeTerminal.new(80), env: env).width }
    assert_nil Sdb::CLI::Terminal.new(StringIO.new, env: narrow).width
  end

  def test_losses_are_words
    assert_nil Sdb::CLI::Losses.words({ torn: 0, gap_ns: 0 })
    assert_equal "1 stack during GC, the newest frames of 1,234 stacks, 2.00 ms not observed",
                 Sdb::CLI::Losses.words({ gc: 1, torn_top: 1234, gap_ns: 2_000_000 })
  end

  def test_a_process_is_called_by_its_service_or_its_script
    ring = Struct.new(:text, :argv, :tags)
    { [nil, %w[/usr/bin/ruby -I/x -w script.rb a]] => "ruby script.rb", [nil, ["ruby", "-w", "-e", "1"]] => "ruby -e",
      ["shop", ["x"]] => "shop", [nil, []] => "ruby", [nil, ["puma: cluster worker 0: 4242 [app]"]] => "puma: cluster worker 0: 4242 [app]",
      [nil, ["bundle\e[0m", "/srv/app/bin/rails"]] => "bundle\\e[0m rails" }.each do |values, name|
      service, argv = values
      assert_equal name, Text.program(ring.new({ "service" => service }.compact, argv, {}))
    end
    assert_equal "shop worker 2", Text.program(ring.new({ "service" => "shop" }, [], { "worker" => "2" }))
  end
end
