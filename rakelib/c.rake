# frozen_string_literal: true

# The C tests of ext/format and ext/recorder/core (test/c): plain, and with sanitizers.

namespace "test" do
  { c: "none", asan: "asan", tsan: "tsan" }.each do |name, sanitizer|
    about = { c: "C tests", asan: "C tests with AddressSanitizer and UBSan",
              tsan: "C tests of what runs threads, with ThreadSanitizer" }
    desc about.fetch(name)
    task name do
      sh "make", "-s", "-C", "test/c", "test", "SAN=#{sanitizer}"
    end
  end
end
