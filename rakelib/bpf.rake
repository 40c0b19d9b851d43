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

VICTIM_SOURCES = ["test/bpf/victim.c", *Dir["ext/recorder/core/*.c"], *Dir["ext/format/*.c"]].freeze
ATTACKER_SOURCES = %w[test/bpf/attacker.c ext/recorder/core/oom_client.c].freeze

{ "tmp/bpf/victim" => VICTIM_SOURCES, "tmp/bpf/attacker" => ATTACKER_SOURCES }.each do |program, sources|
  file program => [*sources, *FileList["ext/format/*.h", "ext/recorder/core/*.h"]] do |t|
    mkdir_p "tmp/bpf", verbose: false
    sh "cc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Iext/recorder", "-Iext/format",
       "-o", t.name, *sources, "-pthread", verbose: false
  end
end

Rake::TestTask.new("test:bpf") do |t|
  t.description = "Tests of the black box: kills inside a small memory cgroup (root)"
  t.libs = %w[lib test]
  t.test_files = ENV["TEST"] ? FileList[ENV["TEST"]] : FileList["test/bpf/test_*.rb"]
  t.ruby_opts = ["-r./test/support/suite_reporter"]
  t.warning = true
end
task "test:bpf" => [:bpf, "tmp/bpf/victim", "tmp/bpf/attacker"]

desc "How far systemd finds the daemon's unit confined (Debian: systemd); 3 and more fails"
task "bpf:security" do
  unit = "bpf/examples/sdb-oomd.service"
  abort "systemd-analyze is not installed (Debian: systemd)" unless BpfTools.which("systemd-analyze")
  lines = IO.popen(["systemd-analyze", "security", "--offline=yes", "--no-pager", unit], &:readlines)
  puts lines.grep(/✗/), lines.last
  score = lines.last[/[\d.]+ /].to_f
  abort "#{unit}: #{score} is too open" if score.zero? || score >= 3
end

desc "What the black box costs: probes, captures, dumps (root)"
task "bench:black_box" => [:bpf, "tmp/bpf/victim"] do
  ruby "-Ilib", "-Itest", "test/bench/black_box.rb"
end
