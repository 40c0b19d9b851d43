# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# C04 and C08: methods that are defined, called, removed and collected by the thousand.
class TestC04C08CodeThatComesAndGoes < Minitest::Test
  include CaseHelper

  # Methods of number N are in evalN.rb and call only each other.
  C04 = <<~RUBY
    #{TOOLS}
    count = 0
    for_seconds(Float(ENV["SECONDS"])) do
      klass = Class.new
      klass.class_eval("def begin_\#{count} = middle_\#{count}\\ndef middle_\#{count} = [1].each { |x| end_\#{count} }\\n" \\
                       "def end_\#{count} = burn(0.0003)", "eval\#{count}.rb")
      klass.new.send(:"begin_\#{count}")
      count += 1
      GC.start if count % 20 == 0
      GC.compact if count % 200 == 0
    end
    puts "methods=\#{count * 3}"
  RUBY

  def test_eval_d_methods_with_gc_between_never_have_the_name_of_another
    result = program!(C04, interval: "100us", ring: long("16M", "64M"), env: { "SECONDS" => long(1.5, 900).to_s })
    numbered = 0
    stacks(log_of(result)).each do |_, frames, _|
      # what defines them is there, too: <main>, and while 3.4 compiles it <compiled>
      ours = frames.select { |f| f.path.match?(/\Aeval\d+\.rb/) && !f.name.end_with?("<main>", "<compiled>") }
      next if ours.empty?

      numbers = ours.flat_map { |f| [f.path[/\d+/], f.name[/_(\d+)/, 1]] }.uniq
      assert_equal 1, numbers.size, ours.map { |f| "#{f.path} #{f.name}" }.inspect
      # line 1 calls line 2, its block line 3: begin, middle, block in middle, end
      assert_equal %w[begin middle middle end].first(ours.size), ours.map { |f| f.name[/(begin|middle|end)_/, 1] }
      numbered += 1
    end
    assert_operator numbered, :>, 50
  end

  # Each method is long enough to be seen; its path is long, so that few fill the symbol area of the smallest ring.
  C08 = <<~RUBY
    #{TOOLS}
    count = 0
    more = lambda do
      name = "made_\#{count}_\#{"x" * 200}"
      o = Object.new
      o.instance_eval("def \#{name} = burn(0.0003)", "/\#{"folder/" * 25}\#{count}.rb")
      o.send(name)
      count += 1
      GC.start if count % 200 == 0
    end
    if ENV["SECONDS"]
      for_seconds(Float(ENV["SECONDS"])) { more.call }
    else
      # while this sleeps, names are given; then come many that are given only when the recording ends
      1_500.times { more.call; sleep 0.001 if count % 20 == 0 }
      sleep 0.2
      1_500.times { more.call }
    end
    before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    Sdb.stop
    puts "stop_cpu_s=\#{Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - before}"
    status = Sdb.status
    puts "iseqs=\#{count}", "recycled=\#{status[:symbols][:recycled]}", "names=\#{status[:symbols][:count]}"
  RUBY

  def test_names_are_recycled_when_there_are_more_than_the_ring_holds
    result = program!(C08, interval: "200us", ring: "4M", env: { "SECONDS" => long(nil, "600") })
    figures = result.figures
    assert_operator figures["recycled"].to_i, :>, 0, result.out
    # a rewrite of all names for each new one took half a minute
    assert_operator figures["stop_cpu_s"].to_f, :<, 5
    assert_flat(figures, 20_000) if LONG
    last = figures["iseqs"].to_i
    made = stacks(log_of(result)).flat_map { |_, frames, _| frames.select { |f| f.path.include?("folder/") && f.name.include?("made_") } }
    made.each { |f| assert_equal f.path[/(\d+)\.rb/, 1], f.name[/made_(\d+)_/, 1], "#{f.path} #{f.name}" }
    assert_operator made.map { |f| f.path[/(\d+)\.rb/, 1].to_i }.max, :>, last - 400, "the newest are there"
  end
end
