# frozen_string_literal: true

namespace :bench do
  desc "How fast the reader turns a log into a profile (thread-samples a second on one core)"
  task :decode do
    core = %w[ring_file ring_identity ring_retain ring_writer ring_records chunk stack_tree string_table symbol_area
              testpoint].map { |unit| "ext/recorder/core/#{unit}.c" }
    mkdir_p "tmp/bench", verbose: false
    sh "cc", "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-Iext/recorder", "-Iext/reader", "-Iext/format", "-o", "tmp/bench/decode",
       "test/bench/decode.c", *Dir["ext/reader/{log,profile}/*.c"], *core, *Dir["ext/format/*.c"], "-lpthread", verbose: false
    [100, 40, 5].each { |busy| sh "tmp/bench/decode", busy.to_s, verbose: false }
  end
end
