# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# Threads of several Ractors run Ruby at the same time. No more than that: with GC.compact, or threads that begin and end
# in Ractors, Ruby 3.3.8 hangs by itself, without sdb in one of five runs on a busy machine.
class TestRactors < Minitest::Test
  include CaseHelper

  def test_threads_of_other_ractors_are_recorded_where_the_vm_tells_of_them
    result = program!(<<~RUBY, interval: "100us", env: { "SECONDS" => long(1, 120).to_s })
      Warning[:experimental] = false
      def self.answer(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take
      class Foo
        def self.burn(n) = n.times { |i| [i.to_s, i] }
      end
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + Integer(ENV["SECONDS"])
      ractors = 3.times.map do |number|
        Ractor.new(number, finish) do |number, finish|
          Thread.current.name = "ractor-\#{number}"
          rounds = 0
          while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
            Foo.burn(1000)
            rounds += 1
          end
          rounds
        end
      end
      sleep 0.01 while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
      puts "ended=\#{ractors.count { |ractor| answer(ractor).positive? }}"
    RUBY
    assert_equal({ "ended" => "3" }, result.figures)
    profile = log_of(result)
    assert_empty profile.warnings.grep(/damaged|corrupt/)
    threads = profile.threads.threads.filter_map(&:name).grep(/ractor/).sort
    # 3.2 tells of a thread only by its GVL, which these never wait for a second time
    assert_equal RUBY_VERSION < "3.3" ? [] : %w[ractor-0 ractor-1 ractor-2], threads
    assert_includes names(profile), "block in Foo.burn" unless threads.empty?
  end

  def test_a_thread_of_another_ractor_is_recorded_once_it_waited
    skip "Ruby 3.1 tells of no thread of another Ractor" if RUBY_VERSION < "3.2"
    result = program!(<<~RUBY)
      #{TOOLS}
      Warning[:experimental] = false
      def self.answer(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take
      def in_ractor = burn(0.2)
      answer(Ractor.new { sleep 0.02; in_ractor; nil })
    RUBY
    assert_includes names(log_of(result)), "Object#in_ractor"
  end

  # A recording must not break a program that runs its spans in a Ractor: there they only run the block.
  def test_spans_in_other_ractors_run_their_block_as_without_a_recording
    code = <<~RUBY
      require "sdb"
      Warning[:experimental] = false
      def self.answer(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take
      told = answer(Ractor.new do
        [Sdb.span("a", kind: :job, x: 1) { 1 }, Sdb.tag(y: 2) { 2 }, Sdb.tag(y: 2), Sdb.tags, Sdb.mark("m"),
         Sdb.current_span, Sdb.begin_span("b", :job, nil, nil, nil, true)].inspect
      rescue Exception => e
        e.full_message
      end)
      puts "told=\#{told.delete(" ")}", "here=\#{Sdb.span("here") { Sdb.current_span.class }}"
    RUBY
    plain = program!(code, with_sdb: false).figures
    assert_equal "[1,2,false,{},nil,nil,nil]", plain["told"]
    assert_equal plain.merge("here" => "Sdb::Native::Span"), program!(code).figures
  end
end
