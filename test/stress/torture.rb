# frozen_string_literal: true

# Everything at once that broke other profilers, for SECONDS (default 600), under the scanner at 0.1 ms: threads that
# end in every way, fibers, enumerators, eval, define_method, escaping blocks, deep recursion, exceptions, GC.compact,
# GC.stress, forks. Ends with one line of figures; a crash, a hang or a recorder that grows is a failure.
#   ruby -Ilib test/stress/torture.rb [SECONDS] [DIR]
#   ruby -Ilib test/stress/torture.rb SECONDS off       the control: the same without a recording
# Judge the process' RSS beside the control's, both with MALLOC_ARENA_MAX=1: such a program grows by itself (Ruby 3.4.11 by
# 8 MiB in 600 s without a recording, by 7 with one).
require "sdb"
require "tmpdir"

SECONDS = Float(ARGV[0] || 600)
OFF = ARGV[1] == "off"
DIR = (OFF ? nil : ARGV[1]) || Dir.mktmpdir("sdb-torture")
Thread.report_on_exception = false # threads that die are the point
DEADLINE = Process.clock_gettime(Process::CLOCK_MONOTONIC) + SECONDS

def left? = Process.clock_gettime(Process::CLOCK_MONOTONIC) < DEADLINE
def rss_kib = File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i

module Torture
  class Node
    define_method(:visit) { |n| n.zero? ? 0 : visit(n - 1) }
    def each(&) = block_given? ? 10.times(&) : enum_for(:each)
    def fail_deep(n) = n.zero? ? raise(ArgumentError, "deep") : fail_deep(n - 1)
    def deep(n) = n.zero? ? 0 : deep(n - 1) + 1
  end

  JOBS = {
    short_threads: -> { 20.times.map { |i| Thread.new { i.to_s * 3 } }.each(&:join) },
    killed_threads: lambda {
      threads = 8.times.map { Thread.new { loop { Node.new.visit(30) } } }
      sleep 0.002
      threads.each(&:kill).each(&:join)
    },
    raising_threads: lambda {
      8.times.map { Thread.new { Node.new.fail_deep(20) } }
       .each do |t|
        t.join
        rescue StandardError
          nil
      end
    },
    raised_into: lambda {
      t = Thread.new { sleep }
      Thread.pass
      t.raise(RuntimeError, "into")
      begin
        t.join
      rescue StandardError
        nil
      end
    },
    exiting_threads: -> { 8.times.map { Thread.new { catch(:x) { throw :x }; Thread.exit } }.each(&:join) },
    escaping: -> { 50.times { x = 1; Thread.new { x += 1; [1].each { |y| proc { x + y }.call } }.join } },
    fibers: lambda {
      fibers = 30.times.map { |i| Fiber.new { 5.times { |k| Fiber.yield([i, k].to_s) } } }
      5.times { fibers.each(&:resume) }
    },
    enumerators: -> { e = Node.new.to_enum(:each); 10.times { e.next } },
    evals: lambda {
      c = Class.new
      20.times { |i| c.class_eval("def m#{i}(x) = x.zero? ? 0 : m#{i}(x - 1)") }
      o = c.new
      20.times { |i| o.send("m#{i}", 10) }
    },
    instance_evals: -> { Object.new.instance_eval { [3, 1, 2].sort_by { |x| -x }.map(&:to_s) } },
    exceptions: -> { 200.times { begin; Integer("x"); rescue ArgumentError => e; e.message; end } },
    ensures: -> { 100.times { begin; next; ensure; Node.new.visit(5); end } },
    deep: -> { Node.new.deep(1500) },
    regexps: -> { 300.times { |i| "a#{i}b" =~ /(\d+)/; ::Regexp.last_match(1).to_i.then { |n| n.to_s[/\d/] } } },
    c_blocks: -> { (1..300).each_slice(3).map(&:sum).inject { |a, b| a + b } },
    sorting: -> { Array.new(300) { |i| (i * 7919) % 997 }.sort { |a, b| a <=> b }.uniq.group_by(&:odd?) },
    garbage: -> { Array.new(2000) { |i| "x#{i}" * 3 } },
    queues: lambda {
      q = Thread::Queue.new
      consumer = Thread.new { n = 0; n += q.pop while n < 45; n }
      10.times { |i| q << i }
      consumer.value
    }
  }.freeze
end

def collector
  Thread.new do
    Thread.current.name = "collector"
    n = 0
    while left?
      n += 1
      GC.start
      GC.compact if GC.respond_to?(:compact) && n % 3 == 0
      if n % 10 == 0
        GC.stress = true
        Torture::Node.new.each.to_a
        GC.stress = false
      end
      sleep 0.05
    end
  end
end

def forker
  Thread.new do
    Thread.current.name = "forker"
    while left?
      pid = fork do
        Torture::JOBS.each_value(&:call) if rand < 0.3
        rand < 0.5 ? exit!(0) : exit(0)
      end
      _, status = Process.wait2(pid)
      abort "child ended with #{status.inspect}" unless status.success?
      sleep 0.1
    end
  end
end

unless OFF
  recorder = Sdb.start(interval: 0.0001, dir: DIR, max_cpu: 0.0, keep: 3)
  abort "not recording: #{recorder.reason}" unless recorder.running?
end
calls = Hash.new(0)
rss = []
own = [] # what the recorder holds
workers = 4.times.map do |w|
  Thread.new do
    Thread.current.name = "worker #{w}"
    random = Random.new(w)
    names = Torture::JOBS.keys
    while left?
      name = names[random.rand(names.size)]
      Torture::JOBS.fetch(name).call
      calls[name] += 1
    end
  end
end
helpers = [collector, forker]
while left?
  sleep [SECONDS / 20.0, 1].max
  rss << rss_kib
  own << (Sdb.status[:cost][:rss_bytes] / 1024) unless OFF
end
(workers + helpers).each(&:join)
QUARTERS = [0, 1, 2, 3, 4].freeze
def course(kib) = QUARTERS.map { |q| kib[(kib.size - 1) * q / 4] }.join(" -> ")

abort "jobs not called: #{Torture::JOBS.keys - calls.keys}" if SECONDS >= 10 && (Torture::JOBS.keys - calls.keys).any?
figures = "#{RUBY_VERSION} #{SECONDS.round}s: #{calls.values.sum} jobs, RSS KiB #{course(rss)}"
if OFF
  puts "#{figures}, not recorded"
  exit
end
path = Sdb.stop
status = Sdb.status
puts "#{figures}, recorder KiB #{course(own)}, #{status[:ticks]} ticks, #{status[:symbols][:count]} names " \
     "(#{status[:symbols][:recycled]} recycled), lost #{status[:lost]}, threads seen #{status[:threads][:seen]}"
abort "no log" unless File.size?(path)
abort "the recorder grew: #{own.inspect} KiB" if SECONDS >= 60 && own.last > own[own.size / 2] + 256
puts path
