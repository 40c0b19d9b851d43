# frozen_string_literal: true

require_relative "test_helper"
require "support/cli_helper"
require "optparse"
require "sdb/cli/filters"

class CLIFiltersTest < Minitest::Test
  def filters(*words)
    filters = Sdb::CLI::Filters.new
    parser = OptionParser.new
    filters.define(parser)
    assert_empty parser.parse(words)
    filters
  end

  def refused(*words)
    assert_raises(Sdb::UsageError, words.join(" ")) { filters(*words) }.message
  end

  def test_without_flags_everything_passes
    assert_empty filters.to_h
    assert_equal :wall, filters.metric
    assert_nil filters.pid
  end

  def test_times_count_from_the_end_the_start_or_by_the_clock
    assert_equal({ from: -30_000_000_000 }, filters("--from", "-30s").to_h)
    assert_equal({ to: 90_000_000_000 }, filters("--to", "90s").to_h)
    assert_equal({ to: 1_500_000_000 }, filters("--to=+1.5s").to_h)
    assert_equal({ last: 600_000_000_000 }, filters("--last", "10m").to_h)
    assert_equal({ from: "14:05:00" }, filters("--from", "14:05").to_h)
    assert_equal({ from: "09:05:10.5" }, filters("--from", "9:05:10.5").to_h)
    assert_equal Time.utc(2026, 8, 1, 14, 5, 10), filters("--from", "2026-08-01T14:05:10Z").to_h[:from]
    assert_equal Time.local(2026, 8, 1, 14, 5), filters("--from", "2026-08-01 14:05").to_h[:from]
  end

  def test_every_other_filter_becomes_a_keyword
    assert_equal({ thread: "main", endpoint: "A#b", request: "r", trace: "t", tag: %w[k=v l=m=n], state: %w[running gc],
                   min_duration: 300_000_000, percentile: 99.0, focus: /a.b/, hide: /c/, only_app: true },
                 filters("--thread", "main", "--endpoint", "A#b", "--request", "r", "--trace", "t", "--tag", "k=v",
                         "--tag", "l=m=n", "--state", "running,gc", "--min-duration", "300ms", "--percentile", "99",
                         "--focus", "a.b", "--hide", "c", "--only-app").to_h)
    assert_equal 42, filters("--pid", "42").pid
    assert_equal :gvl_wait, filters("--metric", "gvl_wait").metric
  end

  def test_a_value_that_makes_no_sense_is_refused_and_says_what_to_give
    assert_includes refused("--last", "10 parsecs"), "use 300ms, 10s, 5m or 1h"
    assert_includes refused("--from", "yesterday"), "clock time"
    assert_includes refused("--to", "2026-99-99"), "clock time"
    assert_includes refused("--to", "25:10"), "clock time"
    assert_includes refused("--to", "12:10:61"), "clock time"
    assert_includes refused("--metric", "cp"), "Did you mean cpu?"
    assert_includes refused("--state", "runing"), "Did you mean running?"
    assert_includes refused("--tag", "novalue"), "name=value"
    assert_includes refused("--pid", "x"), "not a number"
    assert_includes refused("--percentile", "101"), "0 to 100"
    assert_includes refused("--focus", "("), "--focus ("
    assert_includes refused("--min-duration", "x"), "not a duration"
  end
end
