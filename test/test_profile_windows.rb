# frozen_string_literal: true

require "test_helper"
require "support/cli_helper"
require "support/profile_helper"

# C46: a window of clock times means the one that touches the log, whatever lies outside of it.
class TestProfileWindows < Minitest::Test
  include ProfileHelper
  include CLIHelper

  MINUTE = 60_000 # ms

  def teardown
    super
    ENV["TZ"] = @tz if defined?(@tz)
  end

  # A log of six minutes, each a function of its own that waits: minute0 to minute5. start: local time.
  def six_minutes(*start, tz: "UTC", name: "six.sdb")
    @tz = ENV.fetch("TZ", nil) unless defined?(@tz)
    ENV["TZ"] = tz
    path = File.join(@dir, name)
    realtime = Time.new(*start).to_i * 1_000_000_000
    RingEncoder.write(path, start_realtime_ns: realtime, start_monotonic_ns: realtime - Time.utc(2026).to_i * 1_000_000_000) do
      6.times { |n| code :"m#{n}", "Log#minute#{n}", path: "/app/log.rb", line: 1 }
      thread :m, tid: 1, main: true
      6.times do |n|
        at n * MINUTE, m: blocked("m#{n}", age: 0)
        park ((n * MINUTE) + 1)..((n + 1) * MINUTE)
      end
      finish 6 * MINUTE
    end
    Sdb::Profile.new([path])
  end

  # Which minutes, as digits, a window has; each in whole or at least its most.
  def minutes(profile, **window)
    profile.functions(**window).functions.select { |f| f.self_ns >= 30_000_000_000 }.map { |f| f.name[/\d/] }.sort.join
  end

  def test_a_window_that_reaches_beyond_the_log_has_what_lies_in_it
    p = six_minutes(2026, 3, 10, 14, 0)
    assert_equal "5", minutes(p, from: "14:05", to: "14:07")
    assert_equal "0", minutes(p, from: "13:50", to: "14:01")
    assert_equal "012345", minutes(p, from: "13:00", to: "15:00")
    assert_equal "23", minutes(p, from: "14:02", to: "14:04")
    assert_equal "", minutes(p, from: "15:00", to: "16:00")
    assert_equal "", minutes(p, from: "10:00", to: "11:00")
  end

  def test_a_clock_time_alone
    p = six_minutes(2026, 3, 10, 14, 0)
    assert_equal "01", minutes(p, to: "14:02")
    assert_equal "012345", minutes(p, to: "14:07")
    assert_equal "45", minutes(p, from: "14:04")
    assert_equal "012345", minutes(p, from: "13:00")
  end

  def test_windows_across_midnight
    p = six_minutes(2026, 3, 10, 23, 57)
    assert_equal "2345", minutes(p, from: "23:59", to: "00:05")
    assert_equal "23", minutes(p, from: "23:59", to: "00:01")
    assert_equal "01", minutes(p, from: "23:50", to: "23:59")
    assert_equal "4", minutes(p, from: "00:01", to: "00:02")
    assert_equal "01", minutes(p, to: "23:59")
    assert_equal "0123", minutes(p, to: "00:01")
    assert_equal "45", minutes(p, from: "00:01")
    assert_equal "012345", minutes(six_minutes(2026, 3, 10, 12, 0), from: "23:00", to: "13:00")
  end

  def test_the_clock_is_that_of_the_place_where_it_is_asked
    p = six_minutes(2026, 3, 10, 14, 0)
    ENV["TZ"] = "Asia/Tokyo"
    assert_equal "5", minutes(p, from: "23:05", to: "23:07")
    ENV["TZ"] = "America/New_York"
    assert_equal "5", minutes(p, from: "10:05", to: "10:07")
    ENV["TZ"] = "Asia/Kolkata"
    assert_equal "01", minutes(p, to: "19:32")
  end

  def test_the_day_on_which_the_clock_is_put_forward
    p = six_minutes(2026, 3, 29, 3, 0, tz: "Europe/Berlin")
    assert_equal "5", minutes(p, from: "03:05", to: "03:10")
    assert_equal "012345", minutes(p, from: "01:30", to: "04:00")
  end

  def test_of_several_days_it_is_the_last
    first = six_minutes(2026, 3, 9, 14, 0, name: "a.sdb")
    second = six_minutes(2026, 3, 10, 14, 0, name: "b.sdb")
    both = Sdb::Profile.new(first.paths + second.paths)
    assert_equal 60_000_000_000, both.functions(from: "14:05", to: "14:07").total_ns
    assert_equal 60_000_000_000, both.functions(from: "14:05").total_ns
    assert_equal "2026-03-10T14:02:00", both.stacks(at: "14:02").at[0, 19]
  end

  def test_a_clock_time_beside_another_kind_of_time
    p = six_minutes(2026, 3, 10, 14, 0)
    assert_equal "1234", minutes(p, from: "14:01", to: "-1m")
    assert_equal "23", minutes(p, from: Time.utc(2026, 3, 10, 14, 2), to: "14:04")
    assert_equal "2345", minutes(p, from: "2m", to: "14:30")
    assert_equal "23", minutes(p, last: "2m", to: "14:04")
    assert_raises(Sdb::FilterError) { p.functions(from: "3m", to: "2m") }
    assert_raises(Sdb::FilterError) { p.functions(to: "25:00") }
  end

  def test_stacks_at_a_clock_time_behind_the_end_are_the_last_ones
    p = six_minutes(2026, 3, 10, 14, 0)
    assert_equal "Log#minute2", p.stacks(at: "14:02:30").threads.first.frames.last.name
    assert_equal "Log#minute5", p.stacks(at: "14:30").threads.first.frames.last.name
  end

  def test_the_command_line_takes_them_so
    path = six_minutes(2026, 3, 10, 14, 0).paths.first
    assert_equal 60_000_000_000, sdb!("functions", "--from", "14:05", "--to", "14:07", "--json", path).json["total_ns"]
    assert_equal 120_000_000_000, sdb!("functions", "--to", "14:02", "--json", path).json["total_ns"]
    assert_equal 0, sdb!("functions", "--from", "2026-03-10T15:00:00Z", "--to", "2026-03-10T16:00:00Z", "--json", path).json["total_ns"]
    assert_equal 60_000_000_000, sdb!("functions", "--from", "2026-03-10T13:00:00Z", "--to", "2026-03-10T14:01:00Z", "--json", path).json["total_ns"]
    assert_equal 1, sdb!("stacks", "--to", "14:30", "--json", path).json["threads"].size
  end
end
