# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# run.rb - Ruby's own tests of threads, signals, processes, I/O, tracing and OpenSSL, without sdb and with it in every
# process, also those that the tests start. What fails with it and not without is sdb's fault. The tests are those of the
# Debian source package of the Ruby that runs this; they are downloaded into tmp/, and nothing of them is kept elsewhere.
#
#   ruby test/ruby_suite/run.rb [FILE...]     e.g. ruby/test_thread.rb openssl
#
# Prints figures for each file and ends with "N passed, N failed, N skipped"; exit status 1 if anything fails only with sdb.

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"
require "timeout"

class RubySuite
  # The source cannot be had here; the message says why.
  class Unavailable < StandardError; end

  ROOT = File.expand_path("../..", __dir__)
  FILES = %w[ruby/test_thread.rb ruby/test_thread_cv.rb ruby/test_thread_queue.rb ruby/test_signal.rb ruby/test_process.rb
             ruby/test_io.rb ruby/test_settracefunc.rb openssl].freeze
  # What cannot be otherwise, and why: printed, not counted as failed.
  KNOWN = {
    "TestProcess#test_daemon_no_threads" => "counts native threads, and the scanner is one",
    "TestSetTraceFunc#test_tracepoint_opt_invokebuiltin_delegate_leave" =>
      "wants an instruction that the VM takes apart when a TracePoint for classes was on (lib/sdb/integrations.rb)"
  }.freeze
  # Before 3.3 one thread of ours stays (PROTOCOL.md, "The guest thread").
  KNOWN_BEFORE_33 = {
    "TestThread#test_list" => "counts Thread.list", "TestThread#test_stop" => "wants to be the only thread"
  }.freeze
  LIMIT_S = 600
  KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

  Outcome = Struct.new(:tests, :failed, :skipped, :end, keyword_init: true)

  def initialize(files)
    @files = files.empty? ? FILES : files
    @work = File.join(ROOT, "tmp/ruby_suite", RUBY_VERSION)
    @package = "ruby#{RUBY_VERSION[/\A\d+\.\d+/]}"
    FileUtils.mkdir_p(@work)
  end

  def run
    source
    puts "#{RUBY_DESCRIPTION}, tests of #{File.basename(source)}"
    sums = @files.map { |file| compare(file) }
    known = RUBY_VERSION < "3.3" ? KNOWN.merge(KNOWN_BEFORE_33) : KNOWN
    expected, only = sums.flat_map(&:last).partition { |name| known.key?(name) }
    expected.each { |name| puts "known: #{name} #{known[name]}" }
    only.each { |name| puts "FAIL only with sdb: #{name}" }
    puts "#{sums.sum(&:first) - only.size - expected.size} passed, #{only.size} failed, 0 skipped"
    only.empty?
  rescue Unavailable => e
    puts "SKIP Ruby's own tests: #{e.message}", "0 passed, 0 failed, 1 skipped"
    true
  end

  private

  # [tests that ran with sdb and do not fail without, too; names of those that fail only with it]
  def compare(file)
    plain = measure(file, with_sdb: false)
    recorded = measure(file, with_sdb: true)
    # by itself, and again: a busy machine fails tests of either
    only = (recorded.failed - plain.failed).select { |name| (1..2).all? { fails_alone?(file, name) } }
    only << "#{file}: #{recorded.end}" if recorded.end && !plain.end
    puts format("%-28s %4d tests, failed without sdb %d, with sdb %d, only with sdb %d", file, recorded.tests, plain.failed.size,
                recorded.failed.size, only.size)
    [recorded.tests - (recorded.failed & plain.failed).size, only]
  end

  def fails_alone?(file, name)
    with, without = [true, false].map { |sdb| measure(file, with_sdb: sdb, options: ["-n", "/\\A#{Regexp.escape(name)}\\z/"]) }
    (with.failed.include?(name) || with.end) && !(without.failed.include?(name) || without.end)
  end

  def measure(file, with_sdb:, options: [])
    Dir.mktmpdir("sdb-ruby-suite") do |dir|
      env = { "SDB" => "0", "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil, "RUBYLIB" => nil }
      env.update("SDB" => nil, "RUBYOPT" => "-I#{ROOT}/lib -rsdb/auto", "SDB_DIR" => dir, "SDB_RING" => "8M") if with_sdb
      command = [RbConfig.ruby, "-I#{source}/tool/lib", "#{source}/test/runner.rb", "--no-retry", *options, file]
      out, ending = output_of(env, command)
      File.write(File.join(@work, "#{file.tr("/", "_")}.#{with_sdb ? "with" : "without"}.log"), out) if options.empty?
      failed = out.scan(/^ +\d+\) (?:Failure|Error):\n(\S+#\S+?):?(?: \[|\n)/).flatten.uniq
      tests, skipped = out.scan(/^(\d+) tests, .*?(\d+) skips/).last&.map(&:to_i)
      Outcome.new(tests: tests || 0, failed: failed, skipped: skipped || 0, end: tests ? nil : ending)
    end
  end

  # What it printed, and how it ended when it told no figures.
  def output_of(env, command)
    read, write = IO.pipe
    pid = spawn(env, *command, chdir: source, in: File::NULL, out: write, err: write, pgroup: true)
    write.close
    reader = Thread.new { read.read.scrub }
    status = Timeout.timeout(LIMIT_S) { Process.wait2(pid).last }
    [reader.value, "ended with #{status}"]
  rescue Timeout::Error
    Process.kill(:KILL, -pid)
    Process.wait(pid)
    [reader.value, "did not end in #{LIMIT_S} s"]
  end

  # The unpacked source package.
  def source
    @source ||= unpacked || begin
      download
      unpacked or raise Unavailable, "#{@package}'s source package has no tests"
    end
  end

  def unpacked = Dir[File.join(@work, "#{@package}-*/test/runner.rb")].map { |path| File.expand_path("../..", path) }.max

  # In a configuration of apt's own, so that the machine's stays as it is.
  def download
    raise Unavailable, "apt-get or dpkg-source is missing" unless %w[apt-get apt-cache dpkg-source].all? { |tool| tool?(tool) }

    %w[lists/partial cache/archives/partial].each { |folder| FileUtils.mkdir_p(File.join(@work, folder)) }
    File.write("#{@work}/sources.list", debian_sources.map { |line| "#{line}\n" }.join)
    File.write("#{@work}/apt.conf", <<~CONF)
      Dir::Etc::sourcelist "#{@work}/sources.list";
      Dir::Etc::sourceparts "-";
      Dir::State::lists "#{@work}/lists";
      Dir::Cache "#{@work}/cache";
      Acquire::Check-Valid-Until "false";
      APT::Sandbox::User "root";
    CONF
    apt("apt-get", "-q", "update") or raise Unavailable, "apt-get update failed: #{@said}"
    raise Unavailable, "no version of #{@package}'s source can be fetched: #{@said}" unless
      versions.any? { |version| apt("apt-get", "-q", "source", "#{@package}=#{version}") }
  ensure
    FileUtils.rm_rf(%w[lists cache].map { |folder| File.join(@work, folder) })
  end

  # The installed one first, then the newest.
  def versions
    installed, = Open3.capture2e("dpkg-query", "-W", "-f", "${Version}", @package)
    apt("apt-cache", "showsrc", @package)
    [installed, *@said.scan(/^Version: (\S+)/).flatten.uniq.reverse].uniq
  end

  # Debian's own archives among the machine's sources, as source archives.
  def debian_sources
    files = ["/etc/apt/sources.list", *Dir["/etc/apt/sources.list.d/*.{list,sources}"]].select { |file| File.file?(file) }
    pairs = files.flat_map { |file| file.end_with?(".sources") ? blocks(File.read(file)) : lines(File.read(file)) }
    pairs = pairs.select { |uri, _| uri.match?(%r{/debian(-security)?/?\z}) }.uniq
    raise Unavailable, "apt's sources name no Debian archive" if pairs.empty?

    option = File.exist?(KEYRING) ? "[signed-by=#{KEYRING}] " : ""
    pairs.map { |uri, suite| "deb-src #{option}#{uri} #{suite} main" }
  end

  def blocks(text)
    text.split(/\n\n+/).flat_map do |block|
      uris, suites = %w[URIs Suites].map { |key| block[/^#{key}:(.*)$/, 1].to_s.split }
      uris.product(suites)
    end
  end

  def lines(text) = text.scan(/^\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)/)

  def apt(*command)
    @said, status = Open3.capture2e({ "APT_CONFIG" => "#{@work}/apt.conf" }, *command, chdir: @work)
    status.success?
  end

  def tool?(name) = ENV["PATH"].split(":").any? { |folder| File.executable?(File.join(folder, name)) }
end

exit(RubySuite.new(ARGV).run ? 0 : 1) if $PROGRAM_NAME == __FILE__
