# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# ruby_chroot.rb - other Rubies to test on: Debian folders made by mmdebstrap and kept in a cache.
# Each holds a copy of the tree, so what is built there never meets the host's libraries. Commands run in a mount
# and pid namespace of their own: nothing stays mounted or running, however they end.

require "digest"
require "etc"
require "fileutils"
require "rbconfig"
require "shellwords"

class RubyChroot
  # This Ruby cannot be reached here; the message says why.
  class Unreachable < StandardError; end

  Recipe = Struct.new(:version, :variant, :packages, :sources, keyword_init: true)

  BUILD_PACKAGES = %w[ca-certificates pkg-config procps libssl-dev libyaml-dev zlib1g-dev redis-server].freeze
  # Debian trixie has 3.3, with YJIT; experimental has 3.4, built without it.
  RECIPES = {
    "3.3" => Recipe.new(version: "3.3", variant: "buildd", packages: %w[ruby3.3 ruby3.3-dev] + BUILD_PACKAGES, sources: []),
    "3.4" => Recipe.new(version: "3.4", variant: "buildd", packages: %w[ruby3.4 ruby3.4-dev] + BUILD_PACKAGES,
                        sources: ["[check-valid-until=no] %s experimental main"])
  }.freeze
  # Nothing to build with: no make, no compiler, no headers. For test/install.
  BARE = Recipe.new(version: "3.3", variant: "minbase", packages: %w[ruby3.3 ca-certificates], sources: [])
  # An app that nobody here wrote. For test/redmine.
  REDMINE = Recipe.new(version: "3.3", variant: "minbase", sources: [],
                       packages: %w[ruby ruby-dev rake gcc make libc6-dev redmine redmine-sqlite puma ca-certificates procps])
  OTHERS = { "bare" => BARE, "redmine" => REDMINE }.freeze
  # Raised when what this file does inside a chroot changes: older caches are then made anew.
  REVISION = 2

  attr_reader :version

  def self.cache_dir
    base = ENV["SDB_TEST_CACHE"] || File.join(ENV["XDG_CACHE_HOME"] || File.join(Dir.home, ".cache"), "sdb")
    File.join(base, "rubies")
  end

  # name: of a recipe, or of OTHERS.
  def initialize(name, root: File.expand_path("../..", __dir__))
    @name = name
    @recipe = OTHERS[name] || RECIPES.fetch(name)
    @version = @recipe.version
    @root = root
  end

  def dir
    key = Digest::SHA256.hexdigest([REVISION, @recipe.to_h, mirror].inspect)[0, 12]
    File.join(self.class.cache_dir, "#{@name}-#{key}")
  end

  # Makes the chroot unless the cache has it. Raises Unreachable.
  #: (?out: IO) -> self
  def prepare(out: $stdout)
    demand
    lock(out)
    bootstrap(out) unless File.directory?(dir)
    bring_network
    self
  end

  # Puts the tree as it is now, but without what was built, at /sdb. Keeps what an earlier run built there.
  def bring_tree
    target = File.join(dir, "sdb")
    FileUtils.mkdir_p(target)
    (Dir.children(target) - %w[tmp]).each { |entry| FileUtils.rm_rf(File.join(target, entry)) }
    list = IO.popen(%w[git ls-files -z --cached --others --exclude-standard], chdir: @root, &:read)
    present = list.split("\0").select { |path| File.exist?(File.join(@root, path)) }.join("\0")
    IO.popen(["tar", "-C", @root, "--null", "-T", "-", "-cf", "-"], "r+b") do |tar|
      writer = Thread.new { tar.write(present) && tar.close_write }
      IO.popen(["tar", "-C", target, "-xpf", "-"], "wb") { |untar| IO.copy_stream(tar, untar) }
      writer.join
    end
    raise Unreachable, "the tree could not be copied into #{target}" unless $?.success?
  end

  # Runs a shell command in /sdb inside. true when it exited 0.
  #: (String, ?env: Hash[String, String], ?out: untyped) -> bool
  def run(command, env: {}, out: $stdout)
    script = <<~SH
      set -e
      mount -t proc proc "$1/proc"
      mount --bind /dev "$1/dev"
      mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
      exec chroot "$1" /bin/sh -c 'cd /sdb && eval "$0"' "$2"
    SH
    unshare = %w[unshare --mount --propagation private --pid --fork --kill-child]
    system(inside_env.merge(env), *unshare, "/bin/sh", "-c", script, "sh", dir, command, out: out, err: %i[child out])
  end

  private

  def demand
    raise Unreachable, "mmdebstrap is not installed" unless tool?("mmdebstrap")
    raise Unreachable, "a chroot needs root" unless Process.euid.zero?
    raise Unreachable, "no namespaces here: unshare failed" unless system("unshare", "--mount", "--pid", "--fork", "true",
                                                                          err: File::NULL)
  end

  def bootstrap(out)
    outdated
    partial = "#{dir}.partial"
    FileUtils.rm_rf(partial)
    out.puts("Ruby #{version}: making a Debian folder in #{dir}")
    command = ["mmdebstrap", "--variant=#{@recipe.variant}", "--include=#{@recipe.packages.join(",")}",
               "--aptopt=Acquire::Check-Valid-Until \"false\"", "trixie", partial]
    command += ["deb #{mirror} trixie main", *@recipe.sources.map { |s| "deb #{format(s, mirror)}" }]
    unless system(inside_env, *command, in: File::NULL, out: out, err: %i[child out])
      FileUtils.rm_rf(partial)
      raise Unreachable, "mmdebstrap failed, its words are above"
    end
    command_names(partial)
    File.rename(partial, dir)
  end

  # `ruby` and its kin by their plain names, which Debian gives to one version only.
  def command_names(root)
    %w[ruby gem bundle rake irb].each do |name|
      versioned = "/usr/bin/#{name}#{version}"
      FileUtils.ln_sf(versioned, File.join(root, "usr/local/bin", name)) if File.exist?(File.join(root, versioned))
    end
  end

  LOCKS = {}
  private_constant :LOCKS

  # One run at a time in a chroot; held until this process ends.
  def lock(out)
    return if LOCKS[@name]

    FileUtils.mkdir_p(self.class.cache_dir)
    LOCKS[@name] = file = File.open(File.join(self.class.cache_dir, "#{@name}.lock"), File::RDWR | File::CREAT)
    return if file.flock(File::LOCK_EX | File::LOCK_NB)

    out.puts("Ruby #{version}: waiting for another run that uses it")
    file.flock(File::LOCK_EX)
  end

  # What older recipes made. Not recent ones: another checkout may be at work with them.
  def outdated
    Dir[File.join(self.class.cache_dir, "#{@name}-*")].each do |old|
      FileUtils.rm_rf(old) unless old == dir || File.mtime(old) > Time.now - (3 * 86_400)
    end
  end

  # Names are resolved and registries trusted as on the host.
  def bring_network
    copy("/etc/resolv.conf", "etc/resolv.conf")
    copy("/etc/hosts", "etc/hosts")
    copy(ENV["SSL_CERT_FILE"] || "/etc/ssl/certs/ca-certificates.crt", "etc/ssl/certs/ca-certificates.crt")
    copy("/etc/gemrc", "etc/gemrc")
    copy(File.join(Dir.home, ".gemrc"), "root/.gemrc")
    copy(File.join(Dir.home, ".bundle/config"), "root/.bundle/config")
  end

  def copy(from, to)
    return unless File.file?(from)

    target = File.join(dir, to)
    FileUtils.mkdir_p(File.dirname(target))
    FileUtils.rm_f(target)
    FileUtils.cp(from, target)
  end

  # A clean start: the host's Ruby must not reach in, but proxies and CI do.
  def inside_env
    kept = %w[CI SDB_TESTING NO_COLOR]
    cleared = ENV.keys.grep(/\A(RUBY|GEM_|BUNDLE_|BUNDLER_|RBENV|RAKE|SDB_|MAKE|MFLAGS)/) - kept - ["BUNDLE_SILENCE_ROOT_WARNING"]
    cleared.to_h { |name| [name, nil] }.merge(
      "HOME" => "/root", "LANG" => "C.UTF-8", "PATH" => "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      "SSL_CERT_FILE" => "/etc/ssl/certs/ca-certificates.crt", "XDG_CACHE_HOME" => nil, "TMPDIR" => nil
    )
  end

  # The mirror this machine's apt uses for Debian itself.
  def mirror
    @mirror ||= begin
      files = ["/etc/apt/sources.list", *Dir["/etc/apt/sources.list.d/*.{list,sources}"]].select { |f| File.file?(f) }
      lines = files.flat_map { |file| File.readlines(file) }
      urls = lines.flat_map { |line| line[/\A\s*(?:URIs:|deb\s)(.*)/, 1].to_s.scan(%r{https?://[^\s\]]+|file:/[^\s\]]+}) }
      urls.find { |url| url.match?(%r{/debian/?\z}) } or raise Unreachable, "apt's sources name no Debian mirror"
    end
  end

  def tool?(name)
    ENV["PATH"].split(":").any? { |folder| File.executable?(File.join(folder, name)) }
  end
end
