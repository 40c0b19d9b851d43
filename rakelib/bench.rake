# frozen_string_literal: true

namespace :bench do
  desc "What a recording costs: CPU of the scanner, what a busy app loses, GVL time, bytes"
  task :cost, %i[rounds seconds] do |_, args|
    ruby "-Ilib", "test/bench/cost.rb", args[:rounds] || "5", args[:seconds] || "2"
  end
end
