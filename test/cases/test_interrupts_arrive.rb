# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# Thread#kill, Timeout and what a trap raises arrive wherever sdb's own code happens to run at that moment. A thread
# whose kill was swallowed runs on with status "aborting", and no second kill ends it.
class TestInterruptsArrive < Minitest::Test
  include CaseHelper

  HELPERS = <<~RUBY
    $stdout.sync = true
    # It has the VM's name or only the kernel's.
    def present_symbolizer
      Thread.list.find do |t|
        t.name == "sdb symbolizer" || File.read("/proc/self/task/\#{t.native_thread_id}/comm") == "sdb symbolizer\n" rescue nil
      end
    end
    # Code that nobody has seen: for the first 20 ms of it.
    def run_new_code
      20.times do
        name = "fresh_\#{$fresh = ($fresh || 0) + 1}"
        Object.class_eval "def \#{name}(till) = (nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < till)"
        send(name, Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.001)
      end
    end
    # Since 3.3 it is only there while there is something to name.
    def symbolizer(seconds = 10)
      wait_until(seconds) { present_symbolizer || (RUBY_VERSION < "3.3" ? nil : (run_new_code; nil)) }
    end
    def wait_until(seconds = 10)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      until (found = yield)
        abort "waited for nothing" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
        sleep 0.002
      end
      found
    end
    def state_of(path) = Sdb.const_get(:Ring).read(path).state
    # a method that Ruby runs on our behalf takes long
    def slow(object, name, seconds, to = object.singleton_class)
      to.prepend(Module.new do
        define_method(name) do |*a|
          from = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) - from < seconds
          super(*a)
        end
      end)
    end
  RUBY

  # On 3.3+ a postponed job begins the symbolizer, inside one of these threads.
  def test_threads_that_are_killed_while_a_new_symbolizer_begins_end
    figures = run_program(<<~RUBY, interval: "1ms")
      left = begun = 0
      till = Time.now + 3
      until Time.now > till || left > 0
        symbolizer.kill.join if RUBY_VERSION >= "3.3" || begun.zero?
        begun += 1
        threads = 4.times.map { Thread.new { loop { run_new_code } } }
        sleep 0.05
        left += threads.each(&:kill).count { |t| t.join(5).nil? }
      end
      puts "left=\#{left}"
      exit!(0)
    RUBY
    assert_equal({ "left" => "0" }, figures)
  end

  def test_threads_that_are_killed_in_forked_children_end
    figures = run_program(<<~RUBY, interval: "100us", env: { "TIMES" => long(6, 300).to_s })
      busy = Thread.new { loop { 1 + 1 } }
      left = Integer(ENV["TIMES"]).times.sum do
        pid = fork do
          left = 0
          till = Time.now + 1.3
          while left.zero? && Time.now < till
            threads = 8.times.map { Thread.new { loop { 1 + 1 } } }
            sleep 0.03
            left += threads.each(&:kill).count { |t| t.join(8).nil? }
          end
          exit!(left)
        end
        Process.wait2(pid).last.exitstatus
      end
      puts "left=\#{left}"
    RUBY
    assert_equal({ "left" => "0" }, figures)
  end

  def test_a_child_has_its_symbolizer_when_there_is_something_to_name
    figures = run_program(<<~RUBY)
      pid = fork { exit!((RUBY_VERSION < "3.3" ? present_symbolizer : symbolizer) ? 0 : 1) }
      puts "has=\#{Process.wait2(pid).last.exitstatus}"
      pid = fork { symbolizer.kill.join; exit!(RUBY_VERSION >= "3.3" && symbolizer ? 0 : 1) }
      puts "has_again=\#{Process.wait2(pid).last.exitstatus}"
    RUBY
    assert_equal({ "has" => "0", "has_again" => RUBY_VERSION < "3.3" ? "1" : "0" }, figures)
  end

  def test_a_child_where_no_thread_can_be_made_goes_on_as_it_would
    result = program(<<~RUBY, interval: "1ms")
      Thread.current.group.freeze
      pid = fork { puts "child=\#{(1..1000).sum}"; $stdout.flush; exit 4 }
      puts "status=\#{Process.wait2(pid).last.exitstatus}"
    RUBY
    assert_equal({ "child" => "500500", "status" => "4" }, result.figures, result.err)
    assert_empty result.err
  end

  # Thread#name may be the app's own code: it takes long, raises, or is traced.
  def test_naming_a_thread_calls_no_code_of_the_app
    result = program!(HELPERS + <<~RUBY)
      asked = 0
      app = Thread.new { sleep }
      app.name = "by its own name"
      app.define_singleton_method(:name) { asked += 1; raise "asked" }
      3.times { run_new_code }
      sleep 0.5
      puts "asked=\#{asked}"
    RUBY
    assert_equal({ "asked" => "0" }, result.figures)
    assert_includes log_of(result).threads.threads.map(&:name), "by its own name"
  end

  def test_a_symbolizer_that_began_where_interrupts_are_masked_can_be_killed
    figures = run_unstarted(<<~RUBY)
      Thread.handle_interrupt(Object => :never) { Sdb.start }
      puts "ended=\#{!symbolizer.kill.join(5).nil?}"
      exit!(0)
    RUBY
    assert_equal({ "ended" => "true" }, figures)
  end

  # What is sent during a start or a stop waits until it is done; the log is whole, and the next start works.
  def test_what_other_threads_send_during_start_and_stop_arrives_after_it
    figures = run_unstarted(<<~RUBY)
      require "timeout"
      slow(nil, :native_thread_id, 0.05, Thread)
      slow(nil, :alive?, 0.02, Thread)
      def killed_in(delay)
        thread = Thread.new { yield; sleep 20; nil }
        sleep delay
        thread.kill
        thread.join(10) ? "ended" : thread.status
      end
      starts = [0.0, 0.01, 0.03, 0.06].map do |delay|
        ended = killed_in(delay) { Sdb.start }
        Sdb.start
        path = Sdb.status[:ring]
        stopped = killed_in(delay) { Sdb.stop }
        Sdb.stop
        [ended, stopped, Sdb.status[:state], state_of(path)].join(",")
      end
      puts "kills=\#{starts.uniq.join(";")}"
      raised = [0.01, 0.03, 0.05].map do |delay|
        Sdb.start
        Timeout.timeout(delay) { Sdb.stop; sleep 20 }
      rescue Timeout::Error
        Sdb.status[:state]
      end
      puts "timeouts=\#{raised.uniq.join(";")}"
    RUBY
    assert_equal({ "kills" => "ended,ended,stopped,stopped", "timeouts" => "stopped" }, figures)
  end

  def test_what_a_trap_raises_during_a_stop_goes_on_when_the_log_is_sealed
    figures = run_unstarted(<<~RUBY)
      slow(nil, :alive?, 0.05, Thread)
      stops = [0.01, 0.02, 0.04, 0.06].map do |delay|
        Sdb.start
        path = Sdb.status[:ring]
        other = spawn("sleep \#{delay}; kill -INT \#{Process.pid}")
        begin
          Sdb.stop
          sleep 20
        rescue Interrupt
          Process.wait(other)
          [Sdb.status[:state], state_of(path)].join(",")
        end
      end
      puts "stops=\#{stops.uniq.join(";")}"
    RUBY
    assert_equal({ "stops" => "stopped,stopped" }, figures)
  end

  # As with other profilers: trap(:USR1) { Sdb.start }.
  def test_a_signal_handler_can_start_and_stop_a_recording
    figures = run_unstarted(<<~RUBY)
      trap(:USR1) { Sdb.start }
      trap(:USR2) { Sdb.stop }
      states = 3.times.flat_map do
        [:USR1, :USR2].map do |signal|
          Process.kill(signal, Process.pid)
          wait_until { (Sdb.status[:ring] && (Sdb.status[:state] == "stopped")) == (signal == :USR2) }
          Sdb.status[:state].sub("parked", "running")
        end
      end
      puts "states=\#{states.join(",")}"
    RUBY
    assert_equal({ "states" => (%w[running stopped] * 3).join(",") }, figures)
  end

  # On the way through a start or a stop it finds one in progress.
  def test_a_signal_handler_that_interrupts_a_start_or_a_stop_goes_on
    figures = run_unstarted(<<~RUBY)
      slow(nil, :native_thread_id, 0.05, Thread)
      slow(nil, :alive?, 0.05, Thread)
      met = 0
      trap(:USR1) { met += 1; Sdb.start; Sdb.stop }
      [0.01, 0.03, 0.06, 0.09].each do |delay|
        other = spawn("sleep \#{delay}; kill -USR1 \#{Process.pid}")
        Sdb.start
        Sdb.stop
        Process.wait(other)
      end
      wait_until { Sdb.stop; Thread.list.size == 1 } # the handlers' threads came to their end, in some order
      puts "met=\#{met}", "state=\#{Sdb.status[:state]}"
    RUBY
    assert_equal({ "met" => "4", "state" => "stopped" }, figures)
  end

  private

  def run_program(code, **options) = program!(HELPERS + code, **options).figures

  # A program that starts the recording by itself.
  def run_unstarted(code)
    run_program("require 'sdb'\nrequire 'sdb/open'\n#{code}", with_sdb: false, env: { "SDB" => nil, "SDB_DIR" => @dir })
  end
end
