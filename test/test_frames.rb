# frozen_string_literal: true

require_relative "test_helper"
require "support/recording_helper"

# Every kind of frame is seen, named as backtraces of Ruby 3.4 name it, with its line.
class TestFrames < Minitest::Test
  include RecordingHelper

  module Kinds
    WAIT = 0.03

    class Foo
      def bar = sleep(WAIT)
      def self.baz = sleep(WAIT)
      def in_block = [1].each { |_| sleep(WAIT) }
      def in_two_blocks = [1].each { |_| [1].each { |_| sleep(WAIT) } }
      define_method(:defined) { sleep(WAIT) }
      define_method(:defined_block) { [1].each { |_| sleep(WAIT) } }
      define_singleton_method(:defined_on_class) { sleep(WAIT) }
      def evaluated = eval("sleep(WAIT)", binding, "evaluated.rb", 7)

      def rescuing
        raise ArgumentError
      rescue ArgumentError
        sleep(WAIT)
      end

      def ensuring
        yield
      ensure
        sleep(WAIT)
      end

      def matching = "a1" =~ /(\d)/ && sleep(WAIT)
      def escaped = proc { sleep(WAIT) }
      def c_block = { a: 1 }.each_entry { |_| sleep(WAIT) }
      def instance_evaluated = Object.new.instance_eval { sleep(WAIT) }
      def by_method_object = method(:bar).call
      def by_send = send(:bar)
      def from_module_caller = from_module
    end

    module Mixin
      def from_module = sleep(WAIT)
    end
    Foo.include(Mixin)
    Anonymous = Class.new { def self.name = nil }
  end

  def self.expect(test_name, *stack_end, &work)
    define_method("test_#{test_name}") do
      profile = record { instance_exec(&work) }
      stacks = profile.each_stack.select { |_, thread, _, _| thread == "main" }.map { |_, _, frames, _| frames.map(&:name) }
      found = stacks.any? { |frames| frames.each_cons(stack_end.size).include?(stack_end) }
      assert found, "#{stack_end.join(" > ")} is not in\n#{stacks.map { |s| s.last(6).join(" > ") }.join("\n")}"
    end
  end

  def foo = Kinds::Foo.new

  FOO = "TestFrames::Kinds::Foo"
  expect("method_and_the_c_method_it_calls", "#{FOO}#bar", "Kernel#sleep") { foo.bar }
  expect("singleton_method", "#{FOO}.baz", "Kernel#sleep") { Kinds::Foo.baz }
  expect("block_in_a_method", "#{FOO}#in_block", "Array#each", "block in #{FOO}#in_block") { foo.in_block }
  expect("block_in_a_block", "block in #{FOO}#in_two_blocks", "Array#each", "block (2 levels) in #{FOO}#in_two_blocks") { foo.in_two_blocks }
  expect("define_method_body", "#{FOO}#defined", "Kernel#sleep") { foo.defined }
  expect("block_in_a_define_method_body", "#{FOO}#defined_block", "Array#each", "block in #{FOO}#defined_block") { foo.defined_block }
  expect("define_singleton_method_body", "#{FOO}.defined_on_class", "Kernel#sleep") { Kinds::Foo.defined_on_class }
  expect("eval", "#{FOO}#evaluated", "Kernel#eval", "#{FOO}#evaluated", "Kernel#sleep") { foo.evaluated }
  expect("rescue_part", "#{FOO}#rescuing", "#{FOO}#rescuing", "Kernel#sleep") { foo.rescuing }
  expect("ensure_part_after_a_normal_end", "#{FOO}#ensuring", "Kernel#sleep") { foo.ensuring { 1 } }
  expect("method_that_set_the_last_match", "#{FOO}#matching", "Kernel#sleep") { foo.matching }
  expect("proc_whose_method_returned", "block in #{FOO}#escaped", "Kernel#sleep") { foo.escaped.call }
  expect("instance_eval", "block in #{FOO}#instance_evaluated", "Kernel#sleep") { foo.instance_evaluated }
  expect("method_object", "#{FOO}#by_method_object", "Method#call", "#{FOO}#bar") { foo.by_method_object }
  expect("method_of_a_module", "#{FOO}#from_module_caller", "TestFrames::Kinds::Mixin#from_module") { foo.from_module_caller }
  expect("anonymous_class", "#<Class>#bar", "Kernel#sleep") { Class.new { def bar = sleep(Kinds::WAIT) }.new.bar }
  expect("fiber", "block in TestFrames#in_fiber", "Kernel#sleep") { in_fiber }
  expect("enumerator_next", "TestFrames#yielding", "Kernel#sleep") { to_enum(:yielding).next }

  def test_a_recording_that_begins_inside_a_fiber_sees_the_fiber_and_what_comes_after
    Fiber.new { start; foo.bar }.resume
    GC.start
    foo.by_send
    stacks = Sdb.open(Sdb.stop).each_stack.map { |_, _, frames, _| frames.map(&:name) }
    assert(stacks.any? { |s| s.each_cons(2).include?(["#{FOO}#bar", "Kernel#sleep"]) && s.any?(/block in .*begins_inside/) })
    assert(stacks.any? { |s| s.include?("#{FOO}#by_send") })
  end

  def in_fiber = Fiber.new { sleep(Kinds::WAIT) }.resume

  def yielding
    sleep(Kinds::WAIT)
    yield 1
  end

  # C21
  def test_two_slow_lines_of_one_method_get_their_own_times
    profile = record { two_lines }
    first = method(:two_lines).source_location[1] + 1
    times = profile.lines(File.realpath(__FILE__)).lines.to_h { |l| [l.line, l.total_ns / 1e6] }
    # against the clock of the method itself: a busy machine sleeps longer
    allowed = RUBY_VERSION < "3.2" ? 0.5 : 0.25 # without events a thread that woke is found some ticks later
    assert_in_delta 1, times.fetch(first) / @slept[0], allowed
    assert_in_delta 1, times.fetch(first + 1) / @slept[1], allowed
  end

  def two_lines
    before = clock_ms; sleep 0.06; between = clock_ms
    sleep 0.12; @slept = [between - before, clock_ms - between]
  end

  def clock_ms = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond)

  def test_a_frame_has_path_and_first_line
    profile = record { foo.bar }
    function = profile.functions.functions.find { |f| f.name == "#{FOO}#bar" }
    assert_equal [File.realpath(__FILE__), Kinds::Foo.instance_method(:bar).source_location[1]], [function.path, function.line]
  end

  def test_threads_that_existed_before_start_are_seen_and_named
    worker = Thread.new { Thread.current.name = "early"; Thread.stop; foo.bar }
    Thread.pass until worker.stop?
    profile = record { worker.wakeup && worker.join }
    assert_includes profile.threads.threads.map(&:name), "early"
    assert(profile.each_stack.any? { |_, thread, frames, _| thread == "early" && frames.any? { |f| f.name == "#{FOO}#bar" } })
  end

  def test_every_end_of_a_thread_ends_it_in_the_log
    ends = { "returned" => -> {}, "raised" => -> { raise "x" }, "exited" => -> { Thread.exit }, "thrown" => -> { throw :x }, "killed" => -> { sleep } }
    profile = record do
      threads = ends.map do |name, work|
        Thread.new do
          Thread.current.report_on_exception = false
          Thread.current.name = name
          burn(0.02)
          sleep 0.1 # the symbolizer asks for its name, and needs the GVL to
          work.call
        end
      end
      sleep 0.3
      threads.last.kill
      threads.each do |t|
        t.join
      rescue StandardError
        nil
      end
      burn(0.1)
    end
    rows = profile.threads.threads.to_h { |t| [t.name, t] }
    whole = rows.fetch("main").end_ns
    ends.each_key do |name|
      assert_operator rows.fetch(name).end_ns, :<, whole - 50_000_000, name
    end
  end
end
