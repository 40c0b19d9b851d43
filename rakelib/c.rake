# frozen_string_literal: true

# The C tests of ext/format, ext/recorder/core and ext/recorder/scan (test/c): plain, with sanitizers, and counted.

require_relative "../test/support/coverage"

namespace "test" do
  { c: "none", asan: "asan", tsan: "tsan" }.each do |name, sanitizer|
    about = { c: "C tests", asan: "C tests with AddressSanitizer and UBSan",
              tsan: "C tests of what runs threads, with ThreadSanitizer" }
    desc about.fetch(name)
    task name do
      sh "make", "-s", "-C", "test/c", "test", "SAN=#{sanitizer}"
    end
  end

  desc "Lines and branches of scan/ and core/ that the C tests reach; fails below 90 % of the lines of scan/"
  task :coverage do
    rm_rf "tmp/c/coverage", verbose: false
    sh "make", "-s", "-C", "test/c", "test", "SAN=coverage"
    Coverage.report("tmp/c/coverage", { "scan" => 90, "core" => 0 }) or abort "too little of scan/ is tried"
  end
end
