# frozen_string_literal: true

require_relative "test_helper"
require "support/recording_helper"
require "support/ring_encoder"
require "open3"

# Start, stop, status, and what a recording leaves behind.
class TestRecorder < Minitest::Test
  include RecordingHelper

  def test_counters_have_the_names_and_the_order_of_the_format
    assert_nil Sdb.const_get(:Native).recorder_missing # loads it
    assert_equal RingEncoder::File::COUNTERS, Sdb.const_get(:Native)::Recorder.status[:counters].keys
  end

  def test_require_alone_starts_and_patches_nothing
    script = <<~RUBY
      before = [Thread.list.size, Process.method(:fork).owner, Process.singleton_class.ancestors.size, Dir["/proc/self/task/*"].size]
      require "sdb"
      after = [Thread.list.size, Process.method(:fork).owner, Process.singleton_class.ancestors.size, Dir["/proc/self/task/*"].size]
      p before == after, Sdb.status[:state], Sdb.status[:reason]
    RUBY
    out, status = run_ruby(script, "SDB" => nil)
    assert_predicate status, :success?
    assert_equal ["true", '"stopped"', '"not started"'], out.lines.map(&:chomp)
  end

  def test_sdb_1_starts_with_require_and_sdb_0_keeps_auto_from_it
    assert_equal "running", run_ruby('require "sdb"; puts Sdb.status[:state]', "SDB" => "1", "SDB_DIR" => @dir).first.chomp
    assert_equal "running", run_ruby('require "sdb/auto"; puts Sdb.status[:state]', "SDB" => nil, "SDB_DIR" => @dir).first.chomp
    assert_equal "stopped", run_ruby('require "sdb/auto"; puts Sdb.status[:state]', "SDB" => "0", "SDB_DIR" => @dir).first.chomp
  end

  def test_start_is_idempotent_and_stop_gives_the_ring_once
    first = start
    assert_same first, Sdb.start
    path = Sdb.stop
    assert_equal first.path, path
    assert_nil Sdb.stop
    assert_equal "stopped", Sdb.status[:state]
  end

  def test_an_app_that_kills_or_raises_into_every_thread_it_finds_can_stop_the_recording
    script = <<~RUBY
      require "sdb"
      60.times do |i|
        Sdb.start(dir: ARGV[0], ring: 4 << 20, keep: 2)
        (Thread.list - [Thread.current]).each { |thread| i.odd? ? thread.kill : thread.raise("on purpose") }
        sleep 0.001 if i % 3 == 0
        Sdb.stop or abort "no log"
      end
    RUBY
    out, err, status = Open3.capture3({ "SDB" => nil }, RbConfig.ruby, "-I#{File.expand_path("../lib", __dir__)}", "-e", script, @dir)
    assert_equal ["", "", true], [out, err, status.success?]
  end

  # Nothing else happens to it, nor is there new code to be named.
  def test_a_thread_that_sleeps_and_is_named_meanwhile_has_its_name_in_the_log
    thread = Thread.new { sleep }
    start
    burn(0.3)
    thread.name = "named late"
    found = 40.times.any? do
      burn(0.1)
      Sdb.open(Sdb.status[:ring]).threads.threads.any? { |t| t.name == "named late" }
    end
    assert found, "no name in the log while it runs"
  ensure
    thread.kill.join
  end

  def test_a_second_recording_gets_a_ring_of_its_own
    start
    one = Sdb.stop
    start
    burn(0.01)
    two = Sdb.stop
    refute_equal one, two
    assert_operator Sdb.open(two).functions.total_ns, :>, 0
  end

  def test_counters_stay_readable_after_stop
    start
    burn(0.05)
    Sdb.stop
    status = Sdb.status
    assert_operator status[:ticks], :>, 5
    assert_operator status[:thread_samples], :>=, status[:ticks]
    assert_operator status[:cost][:cpu_ns], :>, 0
  end

  def test_a_directory_that_cannot_be_is_a_reason_and_not_an_error
    file = File.join(@dir, "file")
    File.write(file, "")
    recorder = nil
    _, err = capture_io { recorder = Sdb.start(dir: File.join(file, "below")) }
    refute_predicate recorder, :running?
    assert_match(/cannot create a ring: .*below/, recorder.reason)
    assert_match(/\Asdb: not recording: .*\n\z/, err)
    assert_equal "disabled", Sdb.status[:state]
    assert_equal recorder.reason, Sdb.status[:reason]
  end

  def test_a_wrong_argument_is_the_callers_error
    assert_match(/interval: "1" is not seconds/, assert_raises(ArgumentError) { Sdb.start(interval: "1") }.message)
    assert_match(/unknown option intervall:/, assert_raises(ArgumentError) { Sdb.start(intervall: 1) }.message)
  end

  def test_profile_gives_the_time_of_the_block_alone
    start
    burn(0.05)
    profile = Sdb.profile do
      only_here
      sleep 0.3 # names come within 200 ms once a thread yields
    end
    names = profile.functions.functions.map(&:name)
    assert_includes names, "TestRecorder#only_here"
    total = profile.functions(metric: :cpu).functions.find { |f| f.name == "TestRecorder#only_here" }.total_ns
    assert_in_delta 100, total / 1e6, 20 # CPU: what passes while others have the cores is not known
    assert_equal "running", Sdb.status[:state].sub("parked", "running")
  end

  def test_profile_without_a_recording_starts_and_stops_one
    profile = Sdb.profile(dir: @dir, threads: [Thread.current]) { only_here }
    assert_equal "stopped", Sdb.status[:state]
    assert_equal 1, profile.threads.threads.size
  end

  def test_the_log_of_a_process_killed_without_warning_has_all_but_the_last_5_ms
    script = <<~RUBY
      require "sdb"
      Sdb.start(dir: #{@dir.inspect}, ring: 4 << 20, max_cpu: 0)
      def busy = (i = 0; i += 1 until Process.clock_gettime(Process::CLOCK_MONOTONIC) > $until)
      $until = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.5
      busy
      $until += 100
      puts Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      $stdout.flush
      busy
    RUBY
    lag = 5.times.map do
      Open3.popen2({ "SDB" => nil }, RbConfig.ruby, "-I#{lib}", "-e", script) do |_in, out, waiter|
        out.gets
        killed = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        Process.kill(:KILL, waiter.pid)
        waiter.value
        ring = Sdb::Ring.read(Dir[File.join(@dir, "#{waiter.pid}-*.sdb")].fetch(0))
        assert_equal "dead", ring.state
        killed - (ring.start_monotonic_ns + Sdb.open(ring.path).duration_ns)
      end
    end
    # the median: a stall of the machine is a recorded gap, not a loss of the log
    assert_operator lag.sort[2], :<=, 8_000_000, lag.inspect
  end

  # The last writes of a recording are made on the app's own thread: a limit on file sizes must not end it there either.
  def test_a_file_size_limit_set_while_recording_ends_no_app_neither_at_stop_nor_at_exit
    ["Sdb.stop", ""].each do |ending|
      script = <<~RUBY
        require "sdb"
        Sdb.start(dir: #{@dir.inspect}, max_cpu: 0)
        Process.setrlimit(Process::RLIMIT_FSIZE, 65_536, 65_536)
        sleep 0.2
        #{ending}
        print "went on"
      RUBY
      out, status = run_ruby(script, "SDB" => nil)
      assert_equal ["went on", 0], [out, status.exitstatus], ending
    end
  end

  def test_a_gc_record_says_what_was_done_and_how_full_the_heap_was
    skip "no GC events before Ruby 3.3: GC is sampled" if RUBY_VERSION < "3.3"
    script = <<~RUBY
      garbage = Array.new(300_000) { |i| "text \#{i}" }
      sleep 1.5 # the heap's figures are read each second, outside of a GC
      before = GC.count
      GC.start
      garbage.clear
      GC.start(full_mark: false)
      60_000.times { "x" * 100 }
      runs = Sdb.open(Sdb.stop).gc_runs
      marked = runs.select { |run| run.phase.include?("mark") }
      p marked.any? { |run| run.phase.split == %w[major mark sweep] },
        marked.any? { |run| !run.phase.include?("major") },
        runs.all? { |run| run.count.between?(1, GC.count) },
        runs.map(&:count) == runs.map(&:count).sort, runs.any? { |run| run.count > before },
        runs.last.heap_live.positive?,
        runs.none? { |run| run.phase.include?("compact") }
      Sdb.start
      GC.compact
      p Sdb.open(Sdb.stop).gc_runs.any? { |run| run.phase.include?("compact") }
    RUBY
    dir = Dir.mktmpdir
    out, status = run_ruby("require 'sdb'\nSdb.start\n" + script, "SDB_DIR" => dir)
    assert_predicate status, :success?, out
    assert_equal ["true"] * 8, out.lines.map(&:chomp)
  ensure
    FileUtils.rm_rf(dir) if dir
  end

  private

  def only_here
    burn(0.1)
  end

  def lib = File.expand_path("../lib", __dir__)

  def run_ruby(script, env)
    out, status = Open3.capture2(env, RbConfig.ruby, "-I#{lib}", "-e", script)
    [out, status]
  end
end
