# frozen_string_literal: true

# libFuzzer on what reads foreign bytes. Needs clang (Debian: clang). The inputs that found or covered
# something are kept in test/golden/corpus.

module Fuzz
  TARGETS = {
    "reader" => %w[ext/reader/log/*.c ext/reader/profile/*.c ext/format/*.c],
    "dump" => %w[ext/reader/log/*.c ext/format/*.c],
    "oomd_register" => %w[bpf/oomd_{register,name,describe,capture,ring}.c ext/format/*.c]
  }.freeze
  FLAGS = %w[-std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Iext/reader -Iext -Iext/format -Ibpf -D_GNU_SOURCE].freeze

  extend Rake::FileUtilsExt

  module_function

  def build(target)
    output = "tmp/fuzz/#{target}"
    mkdir_p("tmp/fuzz", verbose: false)
    sh("clang", *FLAGS, "-o", output, "test/c/fuzz_#{target}.c", *Dir[*TARGETS.fetch(target)], "-lz", "-pthread", verbose: false)
    output
  end

  def run(target, seconds)
    program = build(target)
    work = "tmp/fuzz/#{target}.corpus"
    mkdir_p(work, verbose: false)
    sh(program, "-max_total_time=#{seconds}", "-max_len=65536", "-rss_limit_mb=512", "-timeout=10",
       "-print_final_stats=1", "-artifact_prefix=tmp/fuzz/", work, "test/golden/corpus/#{target}")
  end

  # Runs the kept inputs only: what `rake test` can afford.
  def replay(target)
    sh(build(target), "-runs=0", "-artifact_prefix=tmp/fuzz/", "test/golden/corpus/#{target}")
  end
end

desc "Fuzz what reads foreign bytes, each for SECONDS (600)"
task :fuzz do
  Fuzz::TARGETS.each_key { |target| Fuzz.run(target, Integer(ENV.fetch("SECONDS", "600"))) }
end

desc "Run the fuzzers' kept inputs once"
task "fuzz:replay" do
  Fuzz::TARGETS.each_key { |target| Fuzz.replay(target) }
end
