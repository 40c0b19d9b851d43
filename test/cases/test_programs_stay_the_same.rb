# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# Little programs whose output and end would tell of sdb's thread, its hooks or its loading.
class TestProgramsStayTheSame < Minitest::Test
  include CaseHelper

  PROGRAMS = {
    "prints" => "puts 1 + 1",
    "exits_with_status" => "exit 7",
    "raises" => "raise 'unhandled'",
    "dies_of_a_deadlock" => "Thread::Queue.new.pop",
    "rescues_a_deadlock" => "begin; Thread::Queue.new.pop; rescue Exception => e; p e.class; end",
    "deadlock_of_two_threads" => <<~RUBY,
      a, b = Mutex.new, Mutex.new
      ready = Thread::Queue.new
      t = Thread.new { b.synchronize { ready << 1; sleep 0.05; a.synchronize { 1 } } }
      begin
        a.synchronize { ready.pop; b.synchronize { 2 } }
      rescue Exception => e
        p e.class
      end
    RUBY
    "joins_every_other_thread" => "3.times { |i| Thread.new { sleep 0.01 * i } }; (Thread.list - [Thread.current]).each(&:join); puts :joined",
    "joins_every_thread" => "3.times { |i| Thread.new { sleep 0.01 * i } }\nbegin; Thread.list.each(&:join); rescue ThreadError => e; p e.class; end",
    "kills_every_other_thread" => "Thread.new { sleep }; (Thread.list - [Thread.current]).each(&:kill).each(&:join); puts :killed",
    "reads_standard_input" => "p $stdin.read",
    "forks" => "pid = fork { puts :child; $stdout.flush; exit 4 }; p Process.wait2(pid)[1].exitstatus",
    "traps" => "trap(:USR1) { puts :trapped }; Process.kill(:USR1, Process.pid); sleep 0.05; puts :on",
    "has_at_exit" => "at_exit { puts :first }; at_exit { puts :second; exit 3 }",
    "times_out" => "require 'timeout'\nbegin; Timeout.timeout(0.05) { sleep }; rescue Timeout::Error => e; p e.class; end",
    "runs_fibers" => "e = Enumerator.new { |y| y << 1; y << 2 }; p e.next, e.next, (e.next rescue $!.class)",
    "counts_its_files" => "p Dir.children('/tmp').class, File.open(__FILE__).fileno < 64",
    "has_a_frozen_thread_group" => "Thread.current.group.freeze\nbegin; Thread.new {}; rescue ThreadError => e; p e.class; end",
    "traces" => "n = 0; TracePoint.new(:call) { n += 1 }.enable { def x = 1; x; x }; p n",
    "throws" => "p catch(:x) { [1].each { throw :x, 5 } }",
    "is_deep" => "def d(n) = n.zero? ? 0 : 1 + d(n - 1)\np d(5000)\nbegin; def e = e; e; rescue SystemStackError => x; p x.class; end"
  }.freeze

  PROGRAMS.each do |name, code|
    define_method("test_a_program_that_#{name}_is_the_same") do
      plain = program(code, with_sdb: false)
      recorded = program(code)
      assert_equal [plain.ending, plain.out], [recorded.ending, recorded.out], recorded.err
      # the messages are those of another file: only their last words are compared
      assert_equal messages(plain), messages(recorded)
    end
  end

  private

  def messages(result) = result.err.scan(/\(\w+(?:Error)?\)/)
end
