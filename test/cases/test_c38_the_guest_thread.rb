# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# sdb's own Ruby thread: signals arrive as without it, nothing of the app meets it where it need not be, and what the
# program did has its names all the same.
class TestC38TheGuestThread < Minitest::Test
  include CaseHelper

  # Before 3.3 the VM has no safe way to begin a thread from outside (PROTOCOL.md): one is always there.
  STAYS = RUBY_VERSION < "3.3"

  # With a second thread the VM expects that one to handle signals (3.1, 3.2).
  %w[INT TERM].each do |signal|
    define_method("test_#{signal}_is_handled_while_a_program_computes_without_the_gvl") do
      result = program(<<~RUBY)
        require "openssl"
        $stdout.sync = true
        trap(:#{signal}) { puts "handled=true"; exit!(3) }
        spawn("sleep 1; kill -#{signal} \#{Process.pid}; sleep 15; kill -KILL \#{Process.pid}", %i[out err] => File::NULL)
        OpenSSL::PKey::DH.new(8192)
      RUBY
      assert_equal [[:exit, 3], { "handled" => "true" }], [result.ending, result.figures], result.err
    end
  end

  def test_a_program_in_its_steady_state_meets_no_thread_that_it_did_not_make
    figures = program!(<<~RUBY).figures
      def work = [1, 2].map { |x| x.to_s }.join
      till = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 1.5
      work while Process.clock_gettime(Process::CLOCK_MONOTONIC) < till
      met = [Thread.list, ThreadGroup::Default.list, Thread.current.group.list, ObjectSpace.each_object(Thread).select(&:alive?)]
      puts "met=\#{met.map { |list| (list - [Thread.current]).map(&:name).join.delete(" ") }.uniq.join(",")}."
    RUBY
    assert_equal({ "met" => STAYS ? "sdbsymbolizer." : "." }, figures)
  end

  # A thread comes and goes, an app's TracePoint sees all threads, and the second in which threads are looked at passes.
  def test_a_program_in_its_steady_state_traces_nothing_of_ours
    figures = program!(<<~RUBY).figures
      def work = [1, 2].map { |x| x.to_s }.join
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      seen = []
      app = Thread.new { 60.times { sleep 0.05 } }
      trace = TracePoint.new(:thread_begin, :thread_end, :c_call, :call) do |t|
        seen << [t.event, t.method_id] unless [Thread.main, app].include?(Thread.current)
      end
      till = now + 1.2
      work while now < till
      trace.enable
      till = now + 1.6
      work while now < till
      trace.disable
      puts "seen=\#{seen.uniq.inspect.delete(" ")}"
    RUBY
    assert_equal({ "seen" => "[]" }, figures)
  end

  # Nobody runs any more when there would be time to name it.
  def test_what_a_process_did_before_it_began_to_hang_has_names
    result = program(<<~RUBY)
      class Orders
        def checkout = reserve { charge }
        def reserve = yield
        def charge
          till = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.02
          nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < till
          gateway
        end
        def gateway = answer { IO.pipe.first.read }
        def answer = yield
      end
      spawn("sleep 2; kill -KILL \#{Process.pid}", %i[out err] => File::NULL)
      Orders.new.checkout
    RUBY
    assert_equal [:signal, 9], result.ending
    found = names(log_of(result))
    %w[Orders#checkout Orders#reserve Orders#charge Orders#gateway Orders#answer].each { |name| assert_includes found, name }
  end

  # The same after a while in which nothing new came.
  def test_a_new_part_of_a_program_that_ran_for_a_while_has_names_when_it_hangs
    result = program(<<~RUBY)
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      def old(till) = (nil while now < till)
      old(now + 1.5)
      #{(1..12).map { |i| "def new_#{i} = (old(now + 0.002); new_#{i + 1})" }.join("\n")}
      def new_13 = IO.pipe.first.read
      spawn("sleep 2; kill -KILL \#{Process.pid}", %i[out err] => File::NULL)
      new_1
    RUBY
    assert_equal [:signal, 9], result.ending
    found = names(log_of(result))
    (1..13).each { |i| assert_includes found, "Object#new_#{i}" }
  end

  # As a daemon does. Before 3.3 the symbolizer waits for a descriptor.
  def test_code_is_named_after_the_app_closed_every_descriptor_it_found
    result = program!(<<~RUBY)
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      sleep 0.3
      # the VM refuses to have its own closed
      Dir.children("/proc/self/fd").map(&:to_i).each { |fd| IO.for_fd(fd).close if fd > 2 rescue nil }
      def after_the_close(till) = ([1].to_s while now < till)
      sleep 0.3
      after_the_close(now + 0.3)
      Process.kill(:KILL, spawn("sleep 9"))
    RUBY
    assert_includes names(log_of(result)), "Object#after_the_close"
  end

  def test_a_stop_ends_where_no_descriptor_is_left
    figures = program!(<<~RUBY, with_sdb: false, env: { "SDB" => nil, "SDB_DIR" => @dir }).figures
      require "sdb"
      Sdb.start
      sleep 0.3
      Process.setrlimit(Process::RLIMIT_NOFILE, 5)
      Sdb.stop
      puts "stopped=true"
    RUBY
    assert_equal({ "stopped" => "true" }, figures)
  end
end
