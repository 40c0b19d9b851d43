# frozen_string_literal: true

require_relative "../test/support/ruby_chroot"

# Redmine of Debian trixie (Ruby 3.3, Rails 7.2) in a folder of its own, with sdb as a gem that is built and installed there.
REDMINE_SETUP = "rm -f sdb-*.gem && gem build --quiet sdb.gemspec 2>/dev/null && " \
                "gem install --quiet --local --no-document --force sdb-*.gem && sdb --version"

desc "Redmine, as Debian ships it, recorded by the environment alone"
task "test:redmine" do
  chroot = RubyChroot.new("redmine").prepare
  chroot.bring_tree
  ok = chroot.run(REDMINE_SETUP) && chroot.run("ruby -r./test/support/suite_reporter test/redmine/test_redmine.rb")
  abort "failed with Redmine" unless ok
rescue RubyChroot::Unreachable => e
  puts "SKIP redmine: #{e.message}", "0 passed, 0 failed, 1 skipped"
end

desc "What a recording costs Redmine under load (as bench:overhead; after test:redmine, which fills it)"
task "bench:overhead_redmine" do
  chroot = RubyChroot.new("redmine").prepare
  chroot.bring_tree
  ok = chroot.run(REDMINE_SETUP) && chroot.run(["ruby", "test/bench/overhead.rb", "--app", "redmine", *BENCH_OPTIONS].shelljoin)
  abort "failed with Redmine" unless ok
end
