# frozen_string_literal: true

require "test_helper"
require "open3"

# The measurements run and print their figures; how large these are is not for a test to judge.
class TestBenches < Minitest::Test
  BENCH = __dir__
  LIB = File.expand_path("../../lib", __dir__)

  def bench(name, *options)
    out, err, status = Open3.capture3({ "SDB" => nil }, RbConfig.ruby, "-I#{LIB}", File.join(BENCH, "#{name}.rb"), *options)
    assert_predicate status, :success?, out + err
    out
  end

  def test_accuracy
    out = bench("accuracy", "--methods", "6", "--scale", "0.05", "--condition", "idle", "--no-targets")
    assert_equal 6, out.scan(/idle (?:one|fresh|shared) +(?:wall|cpu) +mean error +\d/).size, out
  end

  def test_cost
    out = bench("cost", "1", "0.1")
    ["an empty 1 kHz loop", "8 threads, depth 150, busy", "1000 threads, depth 10, idle"].each do |line|
      assert_match(/^#{line} +\d+\.\d\d ms CPU/, out)
    end
    assert_match(/^a spinning app, scanner on its own core +-?\d/, out)
    assert_match(/^naming new methods +\d/, out)
  end

  def test_churn
    out = bench("churn", "1", "20")
    assert_match(/^20 reloads of a class of 150 methods, \d+ codes named/, out)
    assert_match(/^with +\d+\.\d MB/, out)
  end

  def test_refork
    out = bench("refork", "3")
    assert_match(/^with a recording +generation 1 +\d+ mappings +\d+ KB, generation 3 +\d+ mappings +\d+ KB/, out)
  end

  def test_overhead
    skip "no taskset" unless system("taskset", "--version", out: File::NULL)
    out = bench("overhead", "--pairs", "2", "--rate-seconds", "2")
    ["control", "floor", "1 ms", "default"].each { |name| assert_match(/^  #{name} +CPU per request +[+-]\d/, out) }
    assert_match(/p99 \d/, out)
  end
end
