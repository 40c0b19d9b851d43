# frozen_string_literal: true

# Measurements; each prints what it found against its target and fails when it missed one. Take them on an idle machine.

# { what it measures => file in test/bench }
BENCHES = {
  "accuracy" => "How far the log is from workloads that measure themselves, idle and with all cores taken",
  "overhead" => "What a recording costs a Rails app under load, in pairs of a second, off and on",
  "refork" => "Memory of thirty generations of forks, off and on",
  "churn" => "Memory of an app that reloads its code all the time, off and on",
  "cost" => "What the scanner costs: own CPU, what the app loses, GVL time, bytes a sample, an idle process"
}.freeze

# What stands after -- on the command line is for the measurement: rake would take its values for tasks.
BENCH_OPTIONS = ARGV.include?("--") ? ARGV.drop(ARGV.index("--") + 1) : []
Rake.application.top_level_tasks.reject! { |task| BENCH_OPTIONS.include?(task) }

namespace :bench do
  BENCHES.each do |name, about|
    desc "#{about} (options after --, as in: rake bench:#{name} -- --help)"
    task name => :compile do
      ruby "-Ilib", "test/bench/#{name}.rb", *BENCH_OPTIONS
    end
  end
end
