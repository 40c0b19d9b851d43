# frozen_string_literal: true

# Measurements; each prints what it found against its target and fails when it missed one. Take them on an idle machine.

# { what it measures => file in test/bench }
BENCHES = {
  "accuracy" => "How far the log is from workloads that measure themselves, idle and with all cores taken",
  "overhead" => "What a recording costs a Rails app under load, in pairs of a second, off and on",
  "cost" => "What the scanner costs: own CPU, what the app loses, GVL time, bytes a sample, an idle process"
}.freeze

namespace :bench do
  BENCHES.each do |name, about|
    desc "#{about} (options after --, as in: rake bench:#{name} -- --help)"
    task name => :compile do
      options = ARGV.include?("--") ? ARGV.drop(ARGV.index("--") + 1) : []
      ruby "-Ilib", "test/bench/#{name}.rb", *options
    end
  end
end
