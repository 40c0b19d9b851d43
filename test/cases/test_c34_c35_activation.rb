# frozen_string_literal: true

require "test_helper"
require "json"
require "sdb"
require "sdb/open"
require "support/installed_gem"

# Recording by the environment alone, sdb being an installed gem that the app's bundle does not have (C34, C35).
class TestC34C35Activation < Minitest::Test
  include InstalledGem

  # What an app could see of it, but for RUBYLIB's folder in the load path.
  FACTS = <<~'RUBY'
    require "json"
    own = ->(path) { path.include?("/lib/sdb") || path.include?("sdb_auto") || path.include?("/.local/share/sdb/") }
    puts JSON.generate(
      gems: Gem.loaded_specs.map { |name, spec| "#{name} #{spec.version}" }.sort,
      features: $LOADED_FEATURES.reject(&own), load_path: $LOAD_PATH.reject(&own), caller: caller, argv: ARGV, program: $PROGRAM_NAME,
      constants: Object.constants.sort - [:Sdb], at_exit: 0
    )
    exit 3
  RUBY

  def setup
    super
    write("facts.rb", FACTS)
    write("Gemfile", %(source "https://rubygems.org"\ngem "rake", "#{rake}"\n))
    write("Rakefile", "task(:facts) { load 'facts.rb' }\n")
    FileUtils.mkdir_p(File.join(@work, "bin"))
  end

  # The oldest there is: another than `require "rake"` takes.
  def rake = Gem::Specification.select { |spec| spec.name == "rake" }.map(&:version).min.to_s

  # Says what Bundler has to say about this machine's gems.
  def install_bundle
    out, err, status = shell("bundle install --local --quiet", with_sdb: false)
    assert_predicate status, :success?, out + err
  end

  # The app does the same with sdb and without, and its process has a log.
  def assert_the_same(script, words, with_bundle: true)
    install_bundle if with_bundle
    plain, expected, seen = [false, true].map { |with_sdb| shell(script, with_sdb: with_sdb) }.then { |a, b| [a, a, b] }
    assert_equal 3, plain.last.exitstatus, plain.first(2).join
    assert_equal [expected[0], expected[1], 3], [seen[0], seen[1], seen[2].exitstatus]
    assert(recorded.any? { |line| line.include?(words) }, "#{words} in #{recorded}")
  end

  def test_a_plain_ruby_is_recorded_and_sees_nothing_of_it
    assert_the_same("ruby -w facts.rb a b", "facts.rb a b", with_bundle: false)
  end

  def test_a_ruby_under_bundle_exec = assert_the_same("bundle exec ruby -w facts.rb", "facts.rb")

  def test_rake_under_bundle_exec_where_the_bundle_pins_another_version = assert_the_same("bundle exec rake facts", "rake facts")

  def test_a_binstub = assert_the_same("bundle binstubs rake --force >/dev/null && bin/rake facts", "rake facts")

  def test_exec = assert_the_same("bundle exec ruby -e 'exec(\"ruby\", \"facts.rb\")'", "facts.rb")

  def test_a_child_ruby_inside_and_outside_of_the_bundle
    assert_the_same("bundle exec ruby -e 'system(\"ruby\", \"facts.rb\"); exit($?.exitstatus)'", "facts.rb")
    assert_the_same("bundle exec ruby -e 'Bundler.with_unbundled_env { system(\"ruby facts.rb unbundled\") }; exit($?.exitstatus)'",
                    "facts.rb unbundled")
    assert_the_same("bundle exec ruby -e 'Bundler.with_original_env { system(\"ruby facts.rb original\") }; exit($?.exitstatus)'",
                    "facts.rb original")
  end

  def test_without_rubygems_without_a_home_and_twice
    assert_equal "true\n", shell!("ruby --disable-gems -e 'p Sdb.auto?'")
    shell!("unset HOME; ruby -e 1")
    out = shell!("eval \"$(sdb env)\"; printf '%s\\n' \"$RUBYOPT\" \"$RUBYLIB\"", env: { "RUBYOPT" => "-W1" })
    assert_equal ["-rsdb_auto -W1", 2], [out.lines.first.chomp, out.lines.last.chomp.split(":").size]
  end

  def test_a_ruby_for_which_nothing_was_built_runs_silently
    folder = File.dirname(Dir[File.join(@gem_home, "gems/sdb-*/lib/sdb/*/sdb_recorder.so")].first)
    script = "mv '#{folder}' '#{folder}-of-another'; ruby -w -e 'p defined?(Sdb)'"
    assert_equal "nil\n", shell!(script)
  end

  def test_a_gem_that_could_not_be_built_says_why_in_one_line
    folder = File.dirname(Dir[File.join(@gem_home, "gems/sdb-*/lib/sdb/*/sdb_recorder.so")].first)
    out, err, = shell("rm '#{folder}'/sdb_recorder.*; echo 'no C compiler (gcc)' >'#{folder}/sdb_recorder.stub'; ruby -w -e 'puts 1'")
    assert_equal ["1\n", "sdb: not recording: no C compiler (gcc)\n"], [out, err]
  end

  def test_root_is_told_when_other_users_could_not_read_it
    skip "only root starts programs of other users" unless Process.euid.zero?

    _, err, status = shell("chmod 700 #{@gem_home.dump}; sdb env", with_sdb: false)
    assert_equal ["sdb env: others may not enter #{@gem_home}: no Ruby of another user will start with these variables\n", 0], [err, status.exitstatus]
  end

  # The way of 0.1: where the gem can be seen it goes on working, and brings no other gem with it.
  def test_sdb_auto_in_rubyopt_activates_sdb_alone
    out = shell!("ruby -w -e 'p Sdb.auto?, Gem.loaded_specs.keys - %w[error_highlight did_you_mean syntax_suggest bundler]'",
                 with_sdb: false, env: { "RUBYOPT" => "-rsdb/auto" })
    assert_equal "true\n[\"sdb\"]\n", out
  end

  def test_when_the_gem_is_gone_every_ruby_still_starts
    assert_equal "nil\n", shell!("rm -r '#{@gem_home}/gems'; ruby -w -e 'p defined?(Sdb)'")
  end

  def test_an_sdb_in_the_bundle_beside_that_of_the_environment
    write("Gemfile", %(source "https://rubygems.org"\ngem "sdb", path: #{ROOT.dump}\n))
    install_bundle
    script = "bundle exec ruby -w -e 'require %(sdb); require %(sdb/rack); p Sdb.auto?, Sdb::Rack::Middleware.name'"
    out, err, status = shell(script, env: { "SDB" => "1" })
    assert_equal ["true\n\"Sdb::Rack::Middleware\"\n", true], [out, status.success?], err
    assert_match(/\Asdb: \S+ in .* is loaded already; the one in \S+ is not used\n\z/, err)
    assert_equal 1, recorded.size
  end

  def test_the_lines_for_a_dockerfile_and_for_fish_say_the_same
    docker = shell!("sdb env --dockerfile", with_sdb: false).lines
    assert_equal [%(ENV RUBYLIB="), %(ENV RUBYOPT="-rsdb_auto${RUBYOPT:+ $RUBYOPT}"\n)], [docker[0][0, 13], docker[1]]
    folder = docker[0][/"(.*)\$\{/, 1]
    assert_path_exists File.join(folder, "sdb_auto.rb")
    assert_includes shell!("sdb env --fish", with_sdb: false), "'#{folder}:"
    assert_equal "-rsdb_auto", JSON.parse(shell!("sdb env --json", with_sdb: false)).dig("variables", "RUBYOPT")
  end
end
