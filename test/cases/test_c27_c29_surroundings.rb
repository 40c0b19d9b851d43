# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"
require "support/profile_helper"

# C27 and C29: names of folders, and a clock that is set.
class TestC27C29Surroundings < Minitest::Test
  include CaseHelper

  def test_a_ring_directory_and_a_program_with_spaces_and_non_ascii_letters
    dir = File.join(@dir, "Übung mit 空白", "ring s")
    file = File.join(@dir, "größer kleiner.rb")
    File.write(file, "# encoding: utf-8\n#{TOOLS}\nclass Maß; def größe = burn(0.1); end\nMaß.new.größe\n")
    result = program!("load #{file.inspect}", dir: dir)
    function = log_of(result, dir: dir).functions.functions.find { |f| f.name == "Maß#größe" }
    assert function, names(log_of(result, dir: dir)).inspect
    assert_equal file, function.path
    out, status = Open3.capture2e({ "LANG" => "C.UTF-8" }, RbConfig.ruby, "-I#{LIB}", File.expand_path("../../exe/sdb", __dir__),
                                  "functions", dir)
    assert_predicate status, :success?, out
    assert_includes out.dup.force_encoding("UTF-8"), "Maß#größe"
  end

  def test_the_gem_in_a_folder_with_spaces_and_non_ascii_letters
    copy = File.join(@dir, "gém folder")
    Dir.mkdir(copy)
    FileUtils.cp_r(LIB, copy)
    out, status = Open3.capture2e({ "SDB_DIR" => @dir, "SDB" => nil }, RbConfig.ruby, "-I#{File.join(copy, "lib")}", "-rsdb/auto", "-e",
                                  "puts Sdb.status[:state], $LOADED_FEATURES.grep(/sdb_recorder/)")
    assert_predicate status, :success?, out
    assert_match(/running|parked/, out)
    assert_includes out.dup.force_encoding("UTF-8"), "gém folder"
  end

  # The recorder measures by the monotonic clock alone. Its realtime is only written beside it (test_profile_filters
  # has the log of a clock that was set).
  def test_durations_are_those_of_the_monotonic_clock
    result = program!(<<~RUBY)
      #{TOOLS}
      from = now
      def waits = sleep(0.4)
      waits
      puts "waited=\#{now - from}"
    RUBY
    waits = log_of(result).functions.functions.find { |f| f.name == "Object#waits" }
    assert_in_delta result.figures["waited"].to_f, waits.total_ns / 1e9, 0.1
  end

  # The hour back or forth lies in the CLOCK records of every second.
  class Stepped < Minitest::Test
    include ProfileHelper

    HOUR = 3_600_000_000_000
    REALTIME = 1_764_460_800_000_000_000

    [HOUR, -HOUR].each do |step|
      define_method("test_a_realtime_clock_set_by_#{step / 1_000_000_000}_s_changes_no_duration") do
        p = profile do
          thread :m, tid: 1, main: true
          at 0, m: running("main:2 work:12")
          at 100, m: running("main:3 other:21")
          record(50) { |r| r.clock(50 * MS, REALTIME + step) }
          finish 200
        end
        assert_equal 200 * MS, p.functions.total_ns
        assert_equal({ "Foo#work" => 99.5, "Bar.other" => 100.5 }, self_ms(p))
        assert_equal 200 * MS, p.duration_ns
      end
    end
  end

  def test_a_realtime_clock_that_is_set_while_recording_changes_no_duration
    skip "to set a clock needs root" unless Process.uid.zero?
    skip "only SDB_SET_CLOCK=1 sets this machine's clock" unless ENV["SDB_SET_CLOCK"] == "1"

    result = program!(<<~RUBY)
      #{TOOLS}
      def waits = sleep(0.4)
      from = now
      system("date", "-s", "@\#{Time.now.to_i + 3600}", out: File::NULL)
      waits
      system("date", "-s", "@\#{Time.now.to_i - 3600}", out: File::NULL)
      puts "passed=\#{now - from}"
    RUBY
    waits = log_of(result).functions.functions.find { |f| f.name == "Object#waits" }
    assert_in_delta 0.4, waits.total_ns / 1e9, 0.1
  end
end
