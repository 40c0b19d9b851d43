# frozen_string_literal: true

# The proofs that sdb knows this Ruby's insides. test/test_layout_headers.rb needs the development gem
# datadog-ruby_core_source (Gemfile: VM headers of each CRuby version, some MB, no code); without it each of its
# tests is a skip that says so.
desc "Layout: this process against the table, the table against each version's headers, calibration against invented VMs"
task "test:layout" => :compile do
  %w[test/test_layout.rb test/test_layout_headers.rb].each { |file| ruby "-w", "-Ilib", "-Itest", "-r./test/support/suite_reporter", file }
  sh "make", "-s", "-C", "test/c", "test", "TESTS=test_calibrate_walk"
end
