# frozen_string_literal: true

# The Ruby tests on the versions that this machine does not have, each in a Debian folder of its own.

require_relative "../test/support/ruby_chroot"

# Without RuboCop, which has its say on the host.
RUBY_SETUP = "export BUNDLE_WITHOUT=lint BUNDLE_JOBS=2 BUNDLE_RETRY=3; bundle check >/dev/null 2>&1 || bundle install"

desc "Ruby tests on 3.3 (YJIT) and 3.4, in Debian folders kept in a cache"
task "test:rubies" => RubyChroot::RECIPES.keys.map { |version| "test:ruby_#{version}" }

RubyChroot::RECIPES.each_key do |version|
  desc "Ruby tests on #{version}"
  task "test:ruby_#{version}" do
    chroot = RubyChroot.new(version).prepare
    chroot.bring_tree
    chroot.run("ruby --version; gem uninstall -a -x sdb >/dev/null 2>&1 || true")
    ok = chroot.run("#{RUBY_SETUP} && bundle exec rake compile")
    ok &&= %w[test test:integration].map { |suite| chroot.run("#{RUBY_SETUP}; bundle exec rake #{suite}") }.all?
    abort "failed on Ruby #{version}" unless ok
  rescue RubyChroot::Unreachable => e
    # Loud and counted: a version that could not be tried is not a version that passed.
    puts "SKIP ruby #{version}: #{e.message}", "0 passed, 0 failed, 1 skipped"
  end
end
