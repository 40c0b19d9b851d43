# frozen_string_literal: true

# What logs that are made to take long, or to break something, do to the command line.
module Hostile
  COMMANDS = [
    "functions", "tree", "tree --min 0", "tree --json", "threads", "slow", "slow --json", "request r", "request r --json", "request r -o PAGE", "lines a.rb",
    "lines c.rb", "callers A#a", "stacks", "stacks --json", "top --count 1", "export collapsed", "flamegraph -o PAGE", "oom show", "oom show --json", "status", "ls"
  ].freeze

  module_function

  def prepare
    root = File.expand_path("..", __dir__)
    $LOAD_PATH.unshift(File.join(root, "test"), File.join(root, "lib"))
    require "tmpdir"
    require "support/cli_fuzz"
  end

  # The two worst of each in CPU, and the worst in memory.
  def measure
    Dir.mktmpdir("sdb-hostile") do |dir|
      HostileRings.all.each do |name, make|
        path = make.call(File.join(dir, "#{name}.sdb"))
        rows = COMMANDS.map { |text| [text, *HostileRings.measure(text.sub("PAGE", File.join(dir, "page.html")).split, path)] }
        slowest = rows.max_by(2) { |_, cpu, _| cpu }.map { |text, cpu, _| format("%.2f s %s", cpu, text) }
        largest = rows.max_by { |_, _, kib| kib }
        puts format("%-14s %5d KiB   CPU: %-52s  memory: %d MiB %s", name, File.stat(path).blocks / 2, slowest.join(", "), largest[2] >> 10, largest[0])
      end
    end
  end

  def fuzz(runs, first)
    Dir.mktmpdir("sdb-fuzz") do |dir|
      CLIFuzz.new(dir).run(runs, first: first) { |number| puts "#{number - first + 1} runs" if ((number - first + 1) % 1000).zero? }
    end
    puts "#{runs} runs from #{first} on: no crash, hang, exception, broken JSON or control character"
  end
end

desc "CPU and memory that crafted small logs cost each command"
task "bench:hostile" do
  Hostile.prepare
  Hostile.measure
end

desc "Every command on RUNS (20000) logs with other bytes and right checksums, from number FIRST (0) on"
task "fuzz:cli" do
  ENV["SDB_DEBUG"] = "1"
  Hostile.prepare
  Hostile.fuzz(Integer(ENV.fetch("RUNS", "20000")), Integer(ENV.fetch("FIRST", "0")))
end
