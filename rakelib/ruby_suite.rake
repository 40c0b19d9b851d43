# frozen_string_literal: true

# Ruby's own tests with sdb in every process, compared with the same without. Not part of `bin/test all`: some four minutes a
# Ruby on two cores, besides the download.

require_relative "../test/support/ruby_chroot"

desc "Ruby's own tests of threads, signals, processes, I/O and OpenSSL, with sdb and without"
task "test:ruby_suite" do
  ruby "test/ruby_suite/run.rb"
end

RubyChroot::RECIPES.each_key do |version|
  desc "The same on #{version}"
  task "test:ruby_suite_#{version}" do
    chroot = RubyChroot.new(version).prepare
    chroot.bring_tree
    setup = "export BUNDLE_WITHOUT=lint; bundle check >/dev/null 2>&1 || bundle install --quiet"
    ok = chroot.run("#{setup} && bundle exec rake compile >/dev/null && ruby test/ruby_suite/run.rb")
    abort "failed on Ruby #{version}" unless ok
  rescue RubyChroot::Unreachable => e
    puts "SKIP ruby #{version}: #{e.message}", "0 passed, 0 failed, 1 skipped"
  end
end
