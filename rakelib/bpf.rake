# frozen_string_literal: true

# The black box: `rake bpf` builds the daemon sdb-oomd, `rake test:bpf` kills processes under it.
#
# Needs clang, libbpf, libelf, bpftool (Debian: clang libbpf-dev libelf-dev bpftool) and, to run, root and a
# memory cgroup. The gem itself needs none of it.

require "rake/testtask"

# What is missing here to build the daemon.
module BpfTools
  TOOLS = { "clang" => "clang", "bpftool" => "bpftool", "make" => "make", "cc" => "gcc" }.freeze
  HEADERS = { "bpf/libbpf.h" => "libbpf-dev", "libelf.h" => "libelf-dev", "zlib.h" => "zlib1g-dev" }.freeze
  PLACES = ["/usr/include", "/usr/local/include"].freeze

  module_function

  # @return [Array<String>] Debian packages
  def missing
    return ["a Linux kernel"] unless RUBY_PLATFORM.include?("linux")

    tools = TOOLS.reject { |tool, _| which(tool) }.values
    tools + HEADERS.reject { |file, _| PLACES.any? { |dir| File.exist?("#{dir}/#{file}") } }.values
  end

  # bpftool lies in /usr/sbin, which is not on everyone's path.
  def which(tool)
    (ENV.fetch("PATH", "").split(":") + %w[/usr/sbin /sbin]).map { |dir| "#{dir}/#{tool}" }.find { |path| File.executable?(path) }
  end
end

desc "Build sdb-oomd into bpf/.output, or say what is missing for it"
task :bpf do
  missing = BpfTools.missing
  if missing.empty?
    sh "make", "-s", "-C", "bpf", "BPFTOOL=#{BpfTools.which("bpftool")}"
    puts "bpf/.output/sdb-oomd"
  else
    ENV["SDB_BPF_MISSING"] = "missing here: #{missing.join(", ")}"
    puts "sdb-oomd is not built: #{ENV.fetch("SDB_BPF_MISSING")} (Debian: apt-get install #{missing.join(" ")})"
  end
end

VICTIM_UNITS = %w[oom_client ring_file ring_identity ring_retain ring_writer ring_records chunk stack_tree
                  string_table testpoint].map { |name| "ext/recorder/core/#{name}.c" }
VICTIM_SOURCES = ["test/bpf/victim.c", *VICTIM_UNITS, "ext/format/crc32c.c", "ext/format/error.c"].freeze

file "tmp/bpf/victim" => [*VICTIM_SOURCES, *FileList["ext/format/*.h", "ext/recorder/core/*.h"]] do |t|
  mkdir_p "tmp/bpf", verbose: false
  sh "cc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-Iext/recorder", "-Iext/format",
     "-o", t.name, *VICTIM_SOURCES, "-pthread", verbose: false
end

Rake::TestTask.new("test:bpf") do |t|
  t.description = "Tests of the black box: kills inside a small memory cgroup (root)"
  t.libs = %w[lib test]
  t.test_files = ENV["TEST"] ? FileList[ENV["TEST"]] : FileList["test/bpf/test_*.rb"]
  t.ruby_opts = ["-r./test/support/suite_reporter"]
  t.warning = true
end
task "test:bpf" => [:bpf, "tmp/bpf/victim"]

desc "What the black box costs: probes, captures, dumps (root)"
task "bench:black_box" => [:bpf, "tmp/bpf/victim"] do
  ruby "-Ilib", "-Itest", "test/bench/black_box.rb"
end
