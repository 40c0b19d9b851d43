# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# build_support.rb - what the two extconf.rb files share: whether this machine can build at all, the
# compiler flags, sources in several folders, and the stub that is installed when it cannot.
# Used only while a gem is built; never loaded by an app. Plain Ruby: it runs before mkmf, which itself
# exits where Ruby's headers are missing.

require "fileutils"
require "rbconfig"
require "shellwords"

module SdbBuild
  ROOT = File.expand_path("../..", __dir__)

  # The gem's own Makefile and Rakefile pass this: a build that fails is then an error and not a stub.
  STRICT = ARGV.include?("--enable-sdb-strict")

  module_function

  # Where lib/ finds a library, or why it is not there: in a folder for each kind of Ruby (lib/sdb/native.rb).
  def library_folder
    File.join(ROOT, "lib", "sdb", RbConfig::CONFIG.values_at("ruby_version", "arch").join("-"))
  end

  def stub_path(name)
    File.join(library_folder, "sdb_#{name}.stub")
  end

  # nil, or why nothing can be compiled here, in words that complete "not built: ...".
  #: (?any_platform: bool) -> String?
  def obstacle(any_platform:)
    return "set off by SDB_STUB=1" if ENV["SDB_STUB"] == "1"

    (platform_obstacle unless any_platform) || engine_obstacle || toolchain_obstacle
  end

  def platform_obstacle
    config = RbConfig::CONFIG
    return "the recorder runs on Linux, this is #{config["host_os"]}" unless config["host_os"].include?("linux")
    return if %w[x86_64 aarch64 arm64].include?(config["host_cpu"])

    "the recorder knows x86_64 and aarch64, this is #{config["host_cpu"]}"
  end

  def engine_obstacle
    "it reads the internals of CRuby, this is #{RUBY_ENGINE}" unless RUBY_ENGINE == "ruby"
  end

  def toolchain_obstacle
    config = RbConfig::CONFIG
    compiler = Shellwords.split(config["CC"]).first
    return "no C compiler (#{compiler})" unless executable?(compiler)
    return "no make (#{make})" unless executable?(make)

    header = File.join(config["rubyhdrdir"].to_s, "ruby.h")
    "Ruby's headers are not installed (#{header})" unless File.exist?(header)
  end

  def make
    Shellwords.split(ENV["MAKE"] || ENV["make"] || "make").first
  end

  def executable?(program)
    return File.executable?(program) if program.include?("/")

    ENV["PATH"].to_s.split(File::PATH_SEPARATOR).any? do |dir|
      path = File.join(dir, program)
      File.file?(path) && File.executable?(path)
    end
  end

  # Leaves the reason in lib/, where `require "sdb"` finds it.
  def install_stub(name, reason)
    abort "sdb_#{name} not built: #{reason}" if STRICT

    warn "sdb_#{name} not built: #{reason}. A stub is installed; the app runs unprofiled."
    FileUtils.mkdir_p(File.dirname(stub_path(name)))
    File.write(stub_path(name), "#{reason}\n")
  end

  # For whoever runs extconf.rb by hand: something that `make` and `make install` do nothing with.
  def dummy_makefile
    File.write("Makefile", "all install static install-so install-rb clean distclean:\n\t@:\n.PHONY: all install clean\n")
  end

  # Sets mkmf's globals for sources in several folders and writes the Makefile. `folders` are relative to
  # the extconf.rb; base names must differ, since all objects land in one folder. Call after `require "mkmf"`.
  def create(name, folders, srcdir)
    File.delete(stub_path(name)) if File.exist?(stub_path(name))
    sources = folders.flat_map { |folder| Dir[File.join(srcdir, folder, "*.c")] }.sort
    twice = sources.group_by { |path| File.basename(path) }.select { |_, paths| paths.size > 1 }
    abort "two sources of one name: #{twice.values.flatten.join(", ")}" unless twice.empty?

    $srcs = sources.map { |path| File.basename(path) }
    folders.each { |folder| $VPATH << "$(srcdir)/#{folder}" }
    set_flags
    create_makefile("sdb/sdb_#{name}")
    File.open("Makefile", "a") { |f| f.puts("", "-include $(OBJS:.o=.d)") }
  end

  def set_flags
    $INCFLAGS << " -I$(srcdir) -I$(srcdir)/.. -I$(srcdir)/../format"
    $CFLAGS << " -std=gnu11 -O2 -g -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter " \
               "-Werror-implicit-function-declaration -MMD -MP"
    # A released gem must go on compiling with compilers that warn about more.
    $CFLAGS << " -Werror" if ENV["CI"] && STRICT
    $CFLAGS << " -DSDB_TESTING=1" if ENV["SDB_TESTING"] == "1"
    append_env_flags
  end

  # rake test:sanitized: SDB_SANITIZE=address,undefined. Without the stack: Ruby leaves C frames by a longjmp that the
  # sanitizer does not see, and switches stacks for fibers, so marks of frames that are gone would be found.
  def append_env_flags
    sanitizers = ENV["SDB_SANITIZE"].to_s
    return if sanitizers.empty?

    $CFLAGS << " -fsanitize=#{sanitizers} -fno-omit-frame-pointer -U_FORTIFY_SOURCE --param asan-stack=0"
    $LDFLAGS << " -fsanitize=#{sanitizers}"
    $LDFLAGS.gsub!("-Wl,-z,defs", "")
    $DLDFLAGS.gsub!(/-Wl,(-z,defs|--no-undefined)/, "")
  end
end
