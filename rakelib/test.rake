# frozen_string_literal: true

# The Ruby tests. A file is its own suite: TEST=test/test_x.rb runs one, TESTOPTS=--name=/x/ a part of it.

require "rake/testtask"

UNIT_TESTS = FileList["test/test_*.rb", "test/{cli,profile,report,export,config,cases}/test_*.rb"]
INTEGRATION_TESTS = FileList["test/integration/test_*.rb"]
BENCH_TESTS = FileList["test/bench/test_*.rb"]
INSTALL_TESTS = FileList["test/install/test_*.rb"]

WORDS = {
  "test" => "Ruby unit tests", "test:integration" => "Tests with real servers, forks and kills",
  "test:benches" => "Runs each measurement for a moment",
  "test:install" => "Installs the gem from its file, with and without a compiler"
}.freeze

{ "test" => UNIT_TESTS, "test:integration" => INTEGRATION_TESTS, "test:benches" => BENCH_TESTS, "test:install" => INSTALL_TESTS }.each do |name, files|
  desc WORDS.fetch(name)
  Rake::TestTask.new(name) do |t|
    t.libs = %w[lib test]
    t.test_files = ENV["TEST"] ? FileList[ENV["TEST"]] : files
    t.ruby_opts = ["-r./test/support/suite_reporter"]
    t.warning = true
  end
  task name => :compile
end
