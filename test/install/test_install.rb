# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "rubygems/package"
require "support/ruby_chroot"

# The gem as users get it, from its file: on a Ruby with a compiler, and on one without compiler, make or headers,
# by RubyGems and by Bundler with a path of its own, in a folder with a space and letters beyond ASCII (C26, C27).
class TestInstall < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  FOLDER = "Ein Ordner mit äöü 日本"
  APP = <<~'RUBY'
    require "sdb"
    Sdb.start(dir: "rings äöü 日本")
    status = Sdb.status
    sleep 0.05
    puts "APP #{status[:state]}|#{status[:reason]}|#{Sdb.stop.to_s.dup.force_encoding("UTF-8")}"
  RUBY

  def test_a_ruby_without_compiler_make_and_headers_gets_a_stub_and_the_app_boots
    install("bare").each do |way, output|
      assert_match(/^APP disabled\|.*no C compiler/, output, way)
      assert_equal 1, output.scan(/sdb: .*no C compiler/).size, "#{way}: one line in the log, in:\n#{output}"
    end
  end

  def test_a_ruby_with_a_compiler_gets_both_libraries
    install("3.3").each do |way, output|
      assert_match(%r{^APP (running|parked)\|\|.*/rings äöü 日本/.*}, output, way)
      assert_match(/^FUNCTIONS .*functions/, output, way)
    end
  end

  def test_a_compiler_that_fails_leaves_a_stub_too
    broken = 'printf "#!/bin/sh\\nexit 1\\n" >/usr/local/bin/gcc; chmod +x /usr/local/bin/gcc; ' \
             "cd /usr/local/bin; ln -sf gcc $(uname -m)-linux-gnu-gcc; cd - >/dev/null; "
    mended = "; rm /usr/local/bin/*gcc"
    install("3.3", ways: { "gem" => "#{broken}gem install --local --no-document sdb.gem && ruby app.rb#{mended}" })
      .each { |way, output| assert_match(/^APP disabled\|.*the build failed, see /, output, way) }
  end

  # Paths are relative to a folder in the chroot that holds the gem, rake's gem and app.rb. LANG=C: what a
  # container without locales has.
  WAYS = {
    "gem" => "gem install --local --no-document sdb.gem && ruby app.rb; " \
             "echo FUNCTIONS $(sdb functions --json \"rings äöü 日本\")",
    "bundle" => "bundle install --local && bundle exec ruby app.rb; " \
                "echo FUNCTIONS $(bundle exec sdb functions --json \"rings äöü 日本\")",
    # Such a bundle sees only gems that it names, and rake runs ext/Rakefile.
    "bundle with a path, LANG=C" => "export LANG=C BUNDLE_PATH=vendor/bundle; echo 'gem \"rake\"' >>Gemfile; bundle install --local && " \
                                    "bundle exec ruby -Ku app.rb; " \
                                    "echo FUNCTIONS $(bundle exec sdb functions --json \"rings äöü 日本\")"
  }.freeze

  private

  # { way => output }
  def install(name, ways: WAYS)
    chroot = RubyChroot.new(name).prepare(out: File.open(File::NULL, "w"))
    ways.to_h do |way, command|
      fill(File.join(chroot.dir, "sdb", FOLDER))
      # other tests have this folder after us
      forget = "gem uninstall -a -x sdb >/dev/null 2>&1; "
      [way, output_of(chroot, "#{forget} (cd '#{FOLDER}' && #{command}); #{forget}")]
    end
  rescue RubyChroot::Unreachable => e
    skip e.message
  end

  def output_of(chroot, command)
    IO.pipe do |reader, writer|
      runner = Thread.new { chroot.run(command, out: writer).tap { writer.close } }
      output = reader.read.force_encoding("UTF-8").scrub
      runner.join
      output
    end
  end

  def fill(folder)
    FileUtils.rm_rf(folder)
    FileUtils.mkdir_p(File.join(folder, "vendor/cache"))
    FileUtils.cp(self.class.packed, File.join(folder, "sdb.gem"))
    FileUtils.cp([self.class.packed, *self.class.rake], File.join(folder, "vendor/cache"))
    File.write(File.join(folder, "app.rb"), APP)
    File.write(File.join(folder, "Gemfile"), %(source "#{Gem.sources.first.uri}"\ngem "sdb"\n))
  end

  # The gem file of this tree, built once.
  def self.packed
    @packed ||= begin
      FileUtils.mkdir_p(work)
      Dir.chdir(ROOT) do
        spec = Gem::Specification.load("sdb.gemspec")
        Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new) { Gem::Package.build(spec, false, false, "#{work}/#{spec.file_name}") }
      end
      Dir["#{work}/sdb-*.gem"].first
    end
  end

  # Bundler with a path of its own installs it as well.
  def self.rake
    @rake ||= begin
      Dir.chdir(work) { system("gem", "fetch", "rake", "--quiet", out: File::NULL) }
      Dir["#{work}/rake-*.gem"]
    end
  end

  def self.work
    File.join(ROOT, "tmp/install")
  end
end
