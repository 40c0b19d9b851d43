# frozen_string_literal: true

namespace :bench do
  desc "What a span, a tag and a fiber switch cost the app"
  task spans: :compile do
    ruby "-Ilib", "test/bench/spans.rb"
  end
end
