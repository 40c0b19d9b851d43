# frozen_string_literal: true

require "test_helper"
require "json"
require "objspace"
require "open3"
require "sdb/native"

# The first proof of the layout: this process, measured without the table, agrees with it, and each way in which
# they can disagree keeps sdb from scanning. The second, for Rubies that are not here: test_layout_headers.rb.
class TestLayout < Minitest::Test
  MEASURED = ["thread ec", "ec vm_stack", "ec vm_stack_size", "ec cfp", "ec thread", "cfp pc", "cfp iseq", "cfp ep", "cfp size",
              "iseq body", "iseq body size", "iseq body encoded"].freeze
  # Not to be told from others by what they hold. The header proof covers them.
  NOT_MEASURED = ["ec fiber", "cfp sp", "cfp self", "cfp jit_return"].freeze
  LOAD_PATH = File.expand_path("../lib", __dir__)

  missing = Sdb.const_get(:Native).recorder_missing
  raise missing if missing

  Testing = Sdb.const_get(:Native).const_get(:Testing)

  def teardown
    Testing.force_layout(nil)
  end

  def test_the_table_is_true_of_this_ruby
    assert_equal Testing.layout_table, Testing.prove_layout
    assert_equal Testing.layout_table(RUBY_VERSION[/\A\d+\.\d+/]), Testing.layout_table
  end

  def test_calibration_finds_every_measured_field_without_the_table
    table = Testing.layout_table
    measured = Testing.calibrate
    MEASURED.each { |field| assert_equal table[field], measured[field], field }
    assert_equal (MEASURED + NOT_MEASURED).sort, table.keys.sort
  end

  MEASURED.each do |field|
    test = field.tr(" ", "_")
    define_method("test_a_table_that_is_wrong_about_#{test}_is_refused_by_name") do
      right = Testing.layout_table.fetch(field)
      assert Testing.force_layout(field, :table, right + 8)
      assert_equal "#{field}: table #{right + 8}, measured #{right}", Testing.prove_layout
    end

    define_method("test_a_process_that_differs_in_#{test}_is_refused_by_name") do
      right = Testing.layout_table.fetch(field)
      assert Testing.force_layout(field, :measured, right + 16)
      assert_equal "#{field}: table #{right}, measured #{right + 16}", Testing.prove_layout
    end
  end

  def test_all_fields_that_differ_are_named_together
    Testing.force_layout("cfp size", :table, 72)
    Testing.force_layout("thread ec", :table, 56)
    assert_match(/\Athread ec: table 56, measured \d+; cfp size: table 72, measured \d+\z/, Testing.prove_layout)
  end

  def test_forcing_ends_with_nil_and_knows_its_fields
    refute Testing.force_layout("cfp colour", :table, 1)
    Testing.force_layout("cfp size", :table, 72)
    Testing.force_layout(nil)
    assert_kind_of Hash, Testing.prove_layout
  end

  def test_versions_without_a_row_have_none
    %w[2.7 3.0 4.1 5.0 3 3.10].each { |version| assert_nil Testing.layout_table(version), version }
  end

  def test_each_field_is_shown_with_both_values
    rows = Testing.layout_each
    assert_equal (MEASURED + NOT_MEASURED).sort, rows.map(&:first).sort
    rows.each { |field, _, _, compared| assert_equal MEASURED.include?(field), compared, field }
  end

  def test_it_works_on_any_thread_and_in_any_fiber
    assert_proven(Thread.new { Testing.prove_layout }.value)
    assert_proven(Fiber.new { Testing.prove_layout }.resume)
    assert_proven(Thread.new { Fiber.new { Testing.prove_layout }.resume }.value)
    assert_proven(Enumerator.new { |y| y << Testing.prove_layout }.next)
  end

  def test_it_works_deep_in_a_stack_and_in_blocks_of_c_methods
    deep = ->(n) { n.zero? ? Testing.prove_layout : [n].map { |m| deep.call(m - 1) }.first }
    assert_proven(deep.call(500))
  end

  def test_it_works_beside_threads_that_wait_run_and_end
    queue = Queue.new
    waiting = Array.new(3) { Thread.new { queue.pop } }
    assert_proven(Testing.prove_layout)
    running = Thread.new { loop { Integer.sqrt(12_345) } }
    5.times { assert_proven(Testing.prove_layout) }
    20.times do
      Thread.new {}
      assert_proven(Testing.prove_layout)
    end
  ensure
    [*waiting, running].compact.each { |t| t.kill.join }
  end

  def test_it_works_while_an_exception_is_handled_and_keeps_it
    raise "mine"
  rescue StandardError => e
    assert_proven(Testing.prove_layout)
    assert_same e, $!
  end

  def test_it_works_under_gc_stress_and_while_tracing
    GC.stress = true
    proven = Testing.prove_layout
    GC.stress = false
    assert_proven(proven)
    seen = 0
    trace = TracePoint.new(:call, :return, :c_call, :b_call, :line) { seen += 1 }
    assert_proven(trace.enable { Testing.prove_layout })
    assert_operator seen, :>, 0
  ensure
    GC.stress = false
  end

  def test_it_leaves_no_constant_method_or_thread_behind
    Testing.prove_layout
    before = [Object.constants, Object.private_instance_methods, Kernel.singleton_methods, Thread.list, global_variables]
    3.times { Testing.prove_layout }
    after = [Object.constants, Object.private_instance_methods, Kernel.singleton_methods, Thread.list, global_variables]
    assert_equal before, after
  end

  def test_it_is_quick
    times = Array.new(15) do
      begin_ms = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :float_millisecond)
      Testing.prove_layout
      Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :float_millisecond) - begin_ms
    end
    assert_operator times.sort[times.size / 2], :<, 5, "median ms of its own CPU time"
  end

  def test_it_works_whatever_the_size_of_vm_stacks
    [16 << 10, 128 << 10, 4 << 20].each do |bytes|
      env = { "RUBY_THREAD_VM_STACK_SIZE" => bytes.to_s, "RUBY_FIBER_VM_STACK_SIZE" => bytes.to_s }
      script = "p [T.prove_layout, Thread.new { Fiber.new { T.prove_layout }.resume }.value].map(&:class)"
      assert_equal "[Hash, Hash]\n", ruby(script, env: env), "stacks of #{bytes} bytes"
    end
  end

  def test_it_works_before_the_program_is_loaded_and_after_it_ended
    assert_equal "Hash\n", ruby("at_exit { p T.prove_layout.class }")
    assert_equal "Hash\n", ruby("", options: ["-W0", "--disable-gems", "-e", "#{preamble}; p T.prove_layout.class"])
  end

  def test_it_works_with_yjit
    skip "this Ruby has no YJIT" unless defined?(RubyVM::YJIT)
    # The threshold lets even code that is called once run compiled.
    [["--yjit"], ["--yjit", "--yjit-call-threshold=1"]].each do |options|
      assert_equal "[true, Hash, Hash]\n", ruby("p [RubyVM::YJIT.enabled?, T.prove_layout.class, T.prove_layout.class]", options: options)
    end
  end

  def test_settings_of_the_compiler_do_not_matter
    assert_equal "Hash\n", ruby("RubyVM::InstructionSequence.compile_option = " \
                                "{tailcall_optimization: true, trace_instruction: false}; p T.prove_layout.class")
    assert_equal "Hash\n", ruby("require 'coverage'; Coverage.start(:all); p T.prove_layout.class")
  end

  def test_warnings_stay_silent
    assert_equal "Hash\n", ruby("p T.prove_layout.class", options: ["-w"])
  end

  def test_a_process_that_may_start_no_thread_is_refused_in_words
    script = "Thread.current.group.freeze; p Thread.list.size, T.prove_layout"
    assert_equal "1\n\"no second thread to calibrate with: ThreadError\"\n", ruby(script)
  end

  # A container's seccomp profile may refuse process_vm_readv; then /proc/self/mem is read.
  def test_without_process_vm_readv_memory_is_read_another_way
    assert_equal "Hash\n", ruby("#{forbid_process_vm_readv}; p T.prove_layout.class")
  end

  def test_without_any_safe_read_it_is_refused_in_words
    no_more_files = "Process.setrlimit(:NOFILE, 3); (IO.for_fd(0).dup rescue 0)"
    out = ruby("#{forbid_process_vm_readv}; #{no_more_files}; p T.prove_layout")
    assert_equal "\"this process may not read its own memory safely (process_vm_readv and /proc/self/mem are both refused)\"\n", out
  end

  def test_a_define_method_that_an_app_replaced_ends_in_words
    script = "class Object; def define_singleton_method(*) = raise('no'); end; p T.prove_layout"
    assert_equal "\"calibration raised: RuntimeError\"\n", ruby(script)
  end

  def test_iseqs_and_method_entries_are_recognised_by_what_the_slot_holds
    # This method (a method entry), define_method's block (an iseq), Kernel#tap (a method entry whatever language it is in).
    object = Object.new
    object.define_singleton_method(:outer) { tap { return Testing.frame_addresses.map { |a| Testing.heap_kind(a) } } }
    kinds = object.outer
    refute_includes kinds, nil
    assert_includes kinds, :iseq
    assert_includes kinds, :ment
  end

  def test_any_other_word_is_neither
    words = [0, 1, 8, 20, 0xdead_bee8, 2**47, 2**63 + 8, 2**64 - 8]
    objects = ["text" * 100, [1] * 100, Object, Object.new, method(:puts), proc {}, Thread.current]
    addresses = objects.map { |object| JSON.parse(ObjectSpace.dump(object)).fetch("address").hex }
    (words + addresses).each { |word| assert_nil Testing.heap_kind(word), word.to_s(16) }
  end

  private

  def assert_proven(result)
    assert_kind_of Hash, result, result.to_s
  end

  # Ruby code that lets process_vm_readv fail with EPERM from there on.
  def forbid_process_vm_readv
    prctl, process_vm_readv = RbConfig::CONFIG["host_cpu"] == "x86_64" ? [157, 310] : [167, 270]
    # load the number of the call; if it is that one return EPERM, else allow (linux/filter.h, linux/seccomp.h)
    program = [[0x20, 0, 0, 0], [0x15, 0, 1, process_vm_readv], [0x06, 0, 0, 0x0005_0001], [0x06, 0, 0, 0x7fff_0000]]
    <<~RUBY.tr("\n", ";")
      $VERBOSE = nil
      filter = #{program.inspect}.map { |i| i.pack("SCCL") }.join
      syscall(#{prctl}, 38, 1, 0, 0, 0)
      list = [#{program.size}, filter].pack("Sx6P")
      syscall(#{prctl}, 22, 2, [list].pack("P").unpack1("Q"))
    RUBY
  end

  def preamble
    "$:.unshift #{LOAD_PATH.inspect}; require 'sdb'; module Sdb; Native.recorder_missing; T = Native::Testing; end; T = Sdb::T"
  end

  # Standard output and error of another Ruby with Testing as T.
  def ruby(script, env: {}, options: [])
    out, status = Open3.capture2e(env, RbConfig.ruby, *options, "-e", "#{preamble}\n#{script}")
    assert_predicate status, :success?, out
    out
  end
end
