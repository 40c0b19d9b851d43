# frozen_string_literal: true

namespace :bench do
  desc "What a span, a tag and a fiber switch cost the app"
  task spans: :compile do
    ruby "-Ilib", "test/bench/spans.rb"
  end

  desc "Jobs a second and memory of 25 Sidekiq threads, off and on (SDB_BENCH_SECONDS)"
  task sidekiq: :compile do
    ruby "test/bench/sidekiq.rb"
  end
end
