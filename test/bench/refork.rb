# frozen_string_literal: true

# Memory of forks of forks, as Pitchfork makes them: each generation works for a moment, then forks the next. With a
# recording and without; a generation must not keep what the recorder of its parent had.
#   ruby -Ilib test/bench/refork.rb [GENERATIONS]     (rake bench:refork)
require "fileutils"
require "json"
require "rbconfig"
require "tmpdir"

module Refork
  LIB = File.expand_path("../../lib", __dir__)
  TARGET_KB = 30 # a generation; Ruby itself leaves some

  module_function

  def busy(seconds)
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    words = 0
    words += [words].map(&:succ).size while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
  end

  def figures
    { mappings: File.foreach("/proc/self/maps").count, own_kb: File.read("/proc/self/status")[/RssAnon:\s+(\d+)/, 1].to_i }
  end

  def generation(number, last)
    busy(0.1)
    sleep 0.02
    puts JSON.generate(figures) if number == 1 || number == last
    $stdout.flush
    return if number == last

    Process.wait(fork do
      generation(number + 1, last)
      exit!(0)
    end)
  end

  def app(record, last)
    if record
      require "sdb"
      dir = Dir.mktmpdir("sdb-refork")
      recorder = Sdb.start(dir: dir, ring: 4 << 20)
      abort recorder.reason unless recorder.running?
    end
    generation(0, last)
  ensure
    FileUtils.rm_rf(dir) if dir
  end

  # Of the first child and the last.
  def run(record, last)
    command = [RbConfig.ruby, "-I#{LIB}", __FILE__, "app", record.to_s, last.to_s]
    IO.popen({ "SDB" => nil, "RUBYOPT" => nil }, command) { |io| io.map { |line| JSON.parse(line, symbolize_names: true) } }
  end

  def main(last)
    grown = [false, true].map do |record|
      first, final = run(record, last)
      puts format("%-20s generation 1 %5d mappings %7d KB, generation %d %5d mappings %7d KB", record ? "with a recording" : "without",
                  first[:mappings], first[:own_kb], last, final[:mappings], final[:own_kb])
      final[:own_kb] - first[:own_kb]
    end
    each = (grown.last - grown.first) / (last - 1.0)
    puts format("%-20s %.0f KB a generation more than without (target: at most %d)", "difference", each, TARGET_KB)
    exit 1 if each > TARGET_KB && last >= 10
  end
end

if ARGV.first == "app"
  Refork.app(ARGV[1] == "true", Integer(ARGV[2]))
else
  Refork.main(Integer(ARGV[0] || 30))
end
