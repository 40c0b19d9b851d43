# frozen_string_literal: true

# The Ruby tests. A file is its own suite: TEST=test/test_x.rb runs one, TESTOPTS=--name=/x/ a part of it.

require "rake/testtask"

UNIT_TESTS = FileList["test/test_*.rb", "test/{cli,profile,report,export,config}/test_*.rb"]
INTEGRATION_TESTS = FileList["test/integration/test_*.rb"]

{ "test" => UNIT_TESTS, "test:integration" => INTEGRATION_TESTS }.each do |name, files|
  desc name == "test" ? "Ruby unit tests" : "Tests with real servers, forks and kills"
  Rake::TestTask.new(name) do |t|
    t.libs = %w[lib test]
    t.test_files = ENV["TEST"] ? FileList[ENV["TEST"]] : files
    t.ruby_opts = ["-r./test/support/suite_reporter"]
    t.warning = true
  end
  task name => :compile
end
