# frozen_string_literal: true

require "test_helper"
require "support/app_server"

# C25: another profiler that runs at the same time. Both must find the method that took the time.
class TestOtherProfilers < Minitest::Test
  include AppServer

  WORK = <<~RUBY
    def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
    def busy
      finish = cpu + 0.5
      nil while cpu < finish
    end
  RUBY

  def test_stackprof_and_sdb_both_work
    both(<<~RUBY)
      require "stackprof"
      #{WORK}
      profile = StackProf.run(mode: :wall, interval: 1000) { busy }
      total = profile[:frames].each_value.find { |frame| frame[:name] == "Object#busy" }[:total_samples]
      puts "share=\#{total.fdiv(profile[:samples])}"
    RUBY
  end

  def test_vernier_and_sdb_both_work
    skip "vernier needs Ruby 3.2.1" if RUBY_VERSION < "3.2.1"
    both(<<~RUBY)
      require "vernier"
      #{WORK}
      result = Vernier.profile(interval: 1000) { busy }
      names = result._stack_table.to_h[:func_table][:name]
      puts "share=\#{names.any? { |name| name.end_with?("busy") } ? 1 : 0}"
    RUBY
  end

  private

  def both(code)
    file = File.join(@work, "program.rb")
    File.write(file, code)
    # in the folder of the bundle that holds the other profiler
    out, err, status = Open3.capture3(environment(:option), *bundle("ruby", file), chdir: ROOT)
    assert_predicate status, :success?, err
    assert_operator out[/share=(\S+)/, 1].to_f, :>, 0.8
    busy = profile.functions(metric: :cpu).functions.find { |function| function.name == "Object#busy" }
    assert_in_delta 500, busy.total_ns / 1e6, 100
  end
end
