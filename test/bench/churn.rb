# frozen_string_literal: true

# Memory of a program that reloads a class again and again, with a recording and without: what the app let go must go,
# although it was seen. Each round runs both, one after the other; printed are the medians and the lowest and highest.
#   ruby -Ilib test/bench/churn.rb [ROUNDS] [RELOADS]     (rake bench:churn)
# Ruby's own heap comes to one of two sizes in this program, some MB apart, so the target compares with the highest.
require "fileutils"
require "json"
require "rbconfig"
require "tmpdir"

module Churn
  LIB = File.expand_path("../../lib", __dir__)
  METHODS = 150
  TARGET_MB = 5

  module_function

  def source
    methods = Array.new(METHODS) { |i| "  def work_#{i}(x)\n    y = x + #{i}\n    200.times { y += 1 }\n    y.odd? ? y * 3 + 1 : y / 2\n  end\n" }
    "class Reloaded\n#{methods.join}end\n"
  end

  def version
    Object.send(:remove_const, :Reloaded) if Object.const_defined?(:Reloaded)
    Object.class_eval(source, "reloaded.rb", 1)
    reloaded = Object.const_get(:Reloaded).new
    METHODS.times { |i| 10.times { reloaded.public_send(:"work_#{i}", i) } }
  end

  def mb = File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i / 1000.0

  def app(record, reloads)
    if record
      require "sdb"
      dir = Dir.mktmpdir("sdb-churn")
      recorder = Sdb.start(dir: dir)
      abort recorder.reason unless recorder.running?
    end
    reloads.times { version }
    puts JSON.generate([mb, record ? Sdb.status[:symbols][:count] : 0])
  ensure
    FileUtils.rm_rf(dir) if dir
  end

  def run(record, reloads)
    command = [RbConfig.ruby, "-I#{LIB}", __FILE__, "app", record.to_s, reloads.to_s]
    JSON.parse(IO.popen({ "SDB" => nil, "RUBYOPT" => nil }, command, &:read))
  end

  def line(name, values)
    sorted = values.sort
    puts format("%-22s %6.1f MB [%.1f, %.1f]", name, sorted[sorted.size / 2], sorted.first, sorted.last)
    sorted
  end

  def main(rounds, reloads)
    names = 0
    pairs = Array.new(rounds) do
      without, = run(false, reloads)
      with, names = run(true, reloads)
      [without, with]
    end
    puts "#{reloads} reloads of a class of #{METHODS} methods, #{names} codes named, resident at the end"
    without = line("without a recording", pairs.map(&:first))
    with = line("with", pairs.map(&:last))
    more = with[with.size / 2] - without.last
    puts format("%-22s %+6.1f MB over the highest without (target: at most %d)", "difference", more, TARGET_MB)
    exit 1 if more > TARGET_MB && reloads >= 1000
  end
end

if ARGV.first == "app"
  Churn.app(ARGV[1] == "true", Integer(ARGV[2]))
else
  Churn.main(Integer(ARGV[0] || 5), Integer(ARGV[1] || 1500))
end
