# frozen_string_literal: true

# The Ruby tests with both extensions under AddressSanitizer and UBSan. Built in a copy of the tree: the libraries of
# the tree itself stay as they are.

require "fileutils"

SANITIZED = "tmp/sanitized"
# Left out: what builds things of its own or measures memory or time, what starts programs in an environment that it
# chooses itself, and what forks: the sanitizer's allocator does not care for its locks at a fork (gcc 12), so a child may
# wait for one for ever where with glibc's it would not.
NOT_SANITIZED = FileList["test/test_layout_headers.rb", "test/test_hostile_logs.rb", "test/test_oom_unprivileged.rb",
                         "test/cases/test_c09_c11_c12_host_calls.rb", "test/cases/test_c10_c17_endings.rb",
                         "test/cases/test_c3{2,3,4,6,8,9}_*.rb", "test/cases/test_c4{0,2,4,9}_*.rb", "test/cases/test_c50_exec.rb",
                         "test/cases/test_forks_of_forks.rb"]
FORKS = "/fork|child|daemon|sparse_giant/" # the giant measures memory

def sanitizer_libraries
  %w[libasan.so libubsan.so].map { |name| `gcc -print-file-name=#{name}`.strip }
end

desc "Ruby tests with the extensions under AddressSanitizer and UBSan"
task "test:sanitized" do
  missing = sanitizer_libraries.reject { |path| File.file?(path) }
  if missing.any?
    puts "SKIP sanitized: #{missing.join(", ")} is not installed", "0 passed, 0 failed, 1 skipped"
    next
  end
  FileUtils.rm_rf(SANITIZED)
  FileUtils.mkdir_p(SANITIZED)
  sh "git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t #{SANITIZED} 2>/dev/null || true", verbose: false
  settings = { "SDB_SANITIZE" => "address,undefined", "SDB_TESTING" => "1" }
  # the interpreter itself frees little at its end and takes addresses of its stack for the collector; Ruby has signal stacks of its own
  run = { "LD_PRELOAD" => sanitizer_libraries.join(" "), "ASAN_OPTIONS" => "detect_leaks=0:detect_stack_use_after_return=0:use_sigaltstack=0",
          "UBSAN_OPTIONS" => "halt_on_error=1:print_stacktrace=1" }
  Dir.chdir(SANITIZED) do
    sh settings, RbConfig.ruby, "-S", "rake", "compile", verbose: false
    files = UNIT_TESTS.to_a - NOT_SANITIZED.to_a
    sh run, RbConfig.ruby, "-Ilib", "-Itest", "-r./test/support/suite_reporter", "-e", "require File.expand_path(ARGV.shift) until ARGV.first == '--'; ARGV.shift",
       *files, "--", "--exclude", FORKS, verbose: false
  end
end
