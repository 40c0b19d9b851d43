# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "json"
require "tmpdir"
require "sdb/doctor"

# Sdb.doctor on this host, and on hosts that lack something: each missing thing is named and has a fix.
class TestDoctor < Minitest::Test
  Doctor = Sdb.const_get(:Doctor)
  NAMES = ["ruby", "platform", "recorder", "layout", "safe read", "ring directory", "settings", "thread states", "jit", "cores",
           "locked memory", "memory limit", "seccomp"].freeze

  # A native library that says what a test wants.
  Native = Struct.new(:doctor_layout, :doctor_facts, :cost) do
    def doctor_tick_cost(_seconds) = cost
  end

  GOOD_LAYOUT = { rows: [{ field: "cfp size", table: 64, measured: 64, compared: true }], reason: nil }.freeze
  GOOD_FACTS = { safe_read: "process_vm_readv", exact_states: true }.freeze
  COST = { same_core_ns: 45_000, same_off_ns: 2000, other_core_ns: 500, other_off_ns: 800, own_cpu_ns: 13_000, displaced_ns: 30_000, cpus: 2, ticks: 500,
           disturbed: false }.freeze

  def setup
    @dir = Dir.mktmpdir("sdb-doctor")
  end

  def teardown
    FileUtils.rm_rf(@dir)
  end

  def test_this_host_and_ruby_can_be_profiled
    facts = Sdb.doctor(config: config)
    assert facts[:ok], facts[:checks].reject { |c| c[:ok] }.inspect
    assert_equal NAMES, facts[:checks].map { |c| c[:name] }
    assert_equal [RUBY_DESCRIPTION, RUBY_PLATFORM, Sdb::VERSION], facts.values_at(:ruby, :platform, :sdb)
    facts[:layout].each { |row| assert_equal row[:table], row[:measured], row[:field] if row[:compared] }
    assert_operator facts[:layout].count { |row| row[:compared] }, :>=, 12
    assert_equal facts.keys.map(&:to_s), JSON.parse(JSON.generate(facts)).keys
  end

  def test_a_check_has_a_fix_exactly_when_it_is_not_good
    Sdb.doctor(config: config)[:checks].each { |c| assert_equal c[:ok] != true, !c[:fix].nil?, c[:name] }
  end

  def test_the_real_measurement_gives_figures_and_an_interval
    check = Sdb.doctor(measure: true, config: config)[:checks].last
    assert_equal "tick cost", check[:name]
    assert_operator check[:figures][:ticks], :>, 20
    assert_includes 100..500_000, check[:figures][:own_cpu_ns]
    assert_match(/5% of a core affords .* on the app's core/, check[:detail])
  end

  def test_a_missing_library_is_named_with_its_reason_and_nothing_native_is_asked
    facts = examine(nil, missing: "no C compiler (cc)")
    refute facts[:ok]
    assert_equal "no C compiler (cc)", find(facts, "recorder")[:detail]
    assert_match(/build-essential/, find(facts, "recorder")[:fix])
    assert_empty facts[:layout]
    assert_empty facts[:checks].map { |c| c[:name] } & ["layout", "safe read", "thread states"]
  end

  def test_a_layout_that_is_not_proven_is_a_no_with_the_field
    facts = examine(native(layout: GOOD_LAYOUT.merge(reason: "cfp size: table 56, measured 64")))
    refute facts[:ok]
    assert_equal "cfp size: table 56, measured 64", find(facts, "layout")[:detail]
    refute_nil find(facts, "layout")[:fix]
  end

  def test_no_safe_read_is_a_no
    facts = examine(native(facts: GOOD_FACTS.merge(safe_read: "none")))
    refute facts[:ok]
    assert_match(/seccomp/, find(facts, "safe read")[:fix])
  end

  def test_inferred_states_are_worth_a_word_but_no_obstacle
    facts = examine(native(facts: GOOD_FACTS.merge(exact_states: false)))
    assert facts[:ok]
    assert_nil find(facts, "thread states")[:ok]
    assert_match(/Ruby 3.2/, find(facts, "thread states")[:fix])
  end

  def test_a_ring_directory_that_cannot_be_used_is_a_no
    file = File.join(@dir, "file")
    File.write(file, "")
    open_to_all = File.join(@dir, "open")
    Dir.mkdir(open_to_all)
    File.chmod(0o777, open_to_all)
    { file => /not a directory/, File.join(file, "below") => /not a directory/, open_to_all => /anybody/ }.each do |dir, words|
      facts = examine(native, dir: dir)
      refute facts[:ok], dir
      assert_match words, find(facts, "ring directory")[:detail]
      assert_match(/SDB_DIR/, find(facts, "ring directory")[:fix])
    end
  end

  def test_a_ring_directory_of_another_user_is_a_no
    skip "needs root to make a directory of another user" unless Process.euid.zero?
    other = File.join(@dir, "other")
    Dir.mkdir(other)
    File.chown(12_345, nil, other)
    assert_match(/another user/, find(examine(native, dir: other), "ring directory")[:detail])
  end

  def test_a_ring_directory_that_is_missing_will_be_made
    assert find(examine(native, dir: File.join(@dir, "a", "b")), "ring directory")[:ok]
    refute_path_exists File.join(@dir, "a")
  end

  def test_wrong_variables_are_shown
    config = Sdb::Config.resolve(env: { "SDB_INTERVAL" => "soon", "SDB_DIR" => @dir })
    facts = Doctor.new(config, missing: nil, recorder: native).examine
    assert_nil find(facts, "settings")[:ok]
    assert_match(/SDB_INTERVAL=soon/, find(facts, "settings")[:detail])
  end

  def test_memory_limits_are_found_in_both_cgroup_versions_and_in_parents
    assert_match(/512 MiB/, memory_check("0::/app/web\n", "app/memory.max" => "#{512 << 20}\n", "app/web/memory.max" => "max\n"))
    assert_match(/256 MiB/, memory_check("5:cpu,memory:/x\n0::/\n", "memory/x/memory.limit_in_bytes" => "#{256 << 20}\n"))
    assert_match(/no cgroup limit/, memory_check("5:memory:/x\n", "memory/x/memory.limit_in_bytes" => "9223372036854771712\n"))
    assert_match(/no cgroup limit/, memory_check("0::/app\n", {}))
    assert_match(/no cgroup limit/, memory_check("0::/../../etc\n", {}))
  end

  def test_seccomp_and_cores_are_read_from_the_kernel
    facts = examine_with_proc({ "status" => "Name:\truby\nCpus_allowed_list:\t3\nSeccomp:\t2\n" })
    assert_match(/filter/, find(facts, "seccomp")[:detail])
    assert_nil find(facts, "cores")[:ok]
    facts = examine_with_proc({ "status" => "Cpus_allowed_list:\t0-2,5,8-9\n" })
    assert_match(/\A6:/, find(facts, "cores")[:detail])
    assert_match(/does not say/, find(facts, "seccomp")[:detail])
  end

  def test_the_afforded_interval_follows_from_cost_and_budget
    assert_equal [1_000_000, 1_000_000], afforded(COST, max_cpu: 0.05)
    assert_equal [8_000_000, 2_000_000], afforded(COST, max_cpu: 0.0075)
    assert_equal [16_000_000, 2_000_000], afforded(COST.merge(displaced_ns: 60_000), max_cpu: 0.0075), "as the governor counts"
    assert_equal [nil, nil], afforded(COST.merge(same_core_ns: 50_000_000, own_cpu_ns: 40_000_000), max_cpu: 0.05)
    assert_equal [1_000_000, nil], afforded(COST.merge(other_core_ns: nil, other_off_ns: nil, cpus: 1), max_cpu: 0.05)
    assert_equal [1_000_000, 1_000_000], afforded(COST.merge(same_core_ns: -5000, other_core_ns: -100), max_cpu: 0.05)
    assert_equal [1_000_000, 1_000_000], afforded(COST, max_cpu: 0)
  end

  def test_a_tick_that_is_too_dear_is_said_with_a_fix
    check = examine(native(cost: COST.merge(disturbed: true)), measure: true, max_cpu: 0.01)[:checks].last
    assert_nil check[:ok]
    assert_match(/1% of a core affords 8 ms on the app's core, 2 ms on another \(other programs disturbed/, check[:detail])
    assert_match(/SDB_MAX_CPU/, check[:fix])
  end

  def test_a_measurement_that_fails_says_why
    check = examine(native(cost: "no thread could be started"), measure: true)[:checks].last
    assert_match(/no thread could be started/, check[:detail])
  end

  private

  def config(dir: @dir, max_cpu: 0.05)
    Sdb::Config.resolve(env: {}, dir: dir, max_cpu: max_cpu)
  end

  def native(layout: GOOD_LAYOUT, facts: GOOD_FACTS, cost: COST)
    Native.new(layout, facts, cost)
  end

  def examine(native, missing: nil, measure: false, **options)
    Doctor.new(config(**options), missing: missing, recorder: native).examine(measure: measure)
  end

  def examine_with_proc(self_files, cgroup = {})
    proc_dir = File.join(@dir, "proc")
    write(File.join(proc_dir, "self"), self_files)
    write(File.join(@dir, "cgroup"), cgroup)
    Doctor.new(config, missing: nil, recorder: native, proc_dir: proc_dir, cgroup_dir: File.join(@dir, "cgroup")).examine
  end

  def memory_check(self_cgroup, files)
    FileUtils.rm_rf(File.join(@dir, "cgroup"))
    find(examine_with_proc({ "cgroup" => self_cgroup }, files), "memory limit")[:detail]
  end

  def write(dir, files)
    FileUtils.mkdir_p(dir)
    files.each do |name, text|
      FileUtils.mkdir_p(File.dirname(File.join(dir, name)))
      File.write(File.join(dir, name), text)
    end
  end

  def afforded(cost, max_cpu:)
    figures = examine(native(cost: cost), measure: true, max_cpu: max_cpu)[:checks].last[:figures]
    figures.values_at(:affords_same_core_ns, :affords_other_core_ns)
  end

  def find(facts, name)
    facts[:checks].find { |check| check[:name] == name }
  end
end
