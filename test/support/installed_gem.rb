# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "rubygems/package"
require "sdb/native"
require "tmpdir"

# sdb as users have it: a gem that RubyGems installed, in a folder of its own with a space and letters beyond ASCII. The
# libraries in it are those of this checkout (test/install compiles them), so that it takes half a second.
module InstalledGem
  ROOT = File.expand_path("../..", __dir__)
  LIBRARIES = Sdb.const_get(:Native)::FOLDER.delete_prefix("#{ROOT}/")

  class << self
    # The gem's file, made once. Without its extensions: its libraries are ready.
    def package
      @package ||= begin
        dir = Dir.mktmpdir("sdb-gem")
        Minitest.after_run { FileUtils.rm_rf(dir) }
        Dir.chdir(ROOT) do
          spec = Gem::Specification.load("sdb.gemspec").dup
          spec.version = "99" # whatever sdb this machine has beside it
          spec.extensions = []
          spec.files += Dir["#{LIBRARIES}/*"]
          quietly { Gem::Package.build(spec, true, false, File.join(dir, "sdb.gem")) }
        end
      end
    end

    def install(gem_home)
      command = %w[gem install --local --force --no-document --quiet -i] << gem_home << package
      out, status = Open3.capture2e({ "RUBYOPT" => nil }, *command)
      raise out unless status.success?
    end

    private

    def quietly(&) = Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new, &)
  end

  def setup
    super
    @work = File.realpath(Dir.mktmpdir("sdb äöü "))
    File.chmod(0o755, @work)
    @rings = File.join(@work, "rings")
    @gem_home = File.join(@work, "gems")
    InstalledGem.install(@gem_home)
  end

  def teardown
    FileUtils.rm_rf(@work)
    super
  end

  # A shell as a user has it, without the bundle of the tests. with_sdb: after `eval "$(sdb env)"`.
  # @return [stdout, stderr, Process::Status]
  def shell(script, with_sdb: true, env: {})
    cleared = ENV.keys.grep(/\A(BUNDLE_|BUNDLER_|RUBY|SDB)/).to_h { |name| [name, nil] }
    settings = { "SDB_DIR" => @rings, "SDB_RING" => "8M", "BUNDLE_SILENCE_ROOT_WARNING" => "1", "HOME" => @work, "XDG_DATA_HOME" => nil,
                 "PATH" => "#{@gem_home}/bin:#{ENV.fetch("PATH")}", "GEM_HOME" => @gem_home, "GEM_PATH" => Gem.path.join(":") }
    start = with_sdb ? "eval \"$(sdb env)\" || exit 99\n" : ""
    Open3.capture3(cleared.merge(settings).merge(env), "sh", "-c", start + script, chdir: @work)
  end

  # As shell, but must end well and silently. @return stdout
  def shell!(script, **options)
    out, err, status = shell(script, **options)
    assert_equal [0, ""], [status.exitstatus, err], out
    out
  end

  def write(name, text)
    File.write(File.join(@work, name), text)
  end

  # Command lines of the processes that left a log.
  def recorded
    Dir[File.join(@rings, "*.sdb")].map { |path| Sdb::Ring.read(path).entry.to_h.fetch(:argv).join(" ") }
  end
end
