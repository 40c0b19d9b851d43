# frozen_string_literal: true

# Spans, tags and handles under everything that moves: threads that are killed, fibers that are dropped, GC.compact,
# stop and start, forks. Ends with a log that reads, and nothing left open that ended. `ruby -Ilib test/stress/spans.rb [SECONDS]`

require "tmpdir"
require "sdb"
require "sdb/open"

SECONDS = Float(ARGV.fetch(0, 20))
FINISH = Process.clock_gettime(Process::CLOCK_MONOTONIC) + SECONDS

def over? = Process.clock_gettime(Process::CLOCK_MONOTONIC) > FINISH

def nest(depth)
  return Sdb.mark("deep") if depth.zero?

  Sdb.span("level #{depth}", id: depth.odd? ? "id-#{rand(1 << 40)}" : nil, depth: depth) do
    Sdb.tag(depth: depth) { nest(depth - 1) }
    raise "on purpose" if rand(40).zero?
  end
rescue RuntimeError
  throw :out if rand(20).zero?
end

JOBS = {
  nesting: -> { catch(:out) { nest(rand(12)) } },
  fibers: lambda {
    fibers = Array.new(20) { |n| Fiber.new { Sdb.span("fiber #{n}", n: n) { Sdb.tag(n: n) { 3.times { Fiber.yield } } } } }
    60.times { fibers.sample.then { |fiber| fiber.resume if fiber.alive? } } # most are dropped in the midst
  },
  enumerators: lambda {
    Sdb.span("outer") { Enumerator.new { |y| 5.times { |n| Sdb.span("inner") { y << n } } }.then { |e| 3.times { e.next } } }
  },
  handles: lambda {
    handles = Array.new(5) { |n| Sdb.begin_span("handle", :request, n.to_s, nil, { n: n }, rand(2).zero?) }.compact
    handles.shuffle.each { |handle| rand(3).zero? ? handle.returned : Thread.new { handle.finish(200) }.join }
    handles.each { |handle| handle.tag(late: 1) && handle.id }
  },
  kills: lambda {
    thread = Thread.new { loop { nest(4) } rescue nil } # rubocop:disable Style/RescueModifier
    sleep 0.002
    thread.kill.join
  },
  collects: -> { rand(3).zero? && GC.respond_to?(:compact) ? GC.compact : GC.start }
}.freeze

def in_fork
  pid = fork do
    Sdb.span("in child") { nest(3) rescue nil } # rubocop:disable Style/RescueModifier
    exit!(0)
  end
  Process.wait(pid)
  abort "a child ended with #{$?}" unless $?.success?
end

Dir.mktmpdir do |dir|
  Sdb.start(dir: dir, ring: 8 << 20, max_cpu: 0, keep: 3)
  rounds = Hash.new(0)
  errors = Queue.new
  threads = JOBS.map do |name, job|
    Thread.new do
      until over?
        catch(:out) { job.call }
        rounds[name] += 1
        sleep 0.0005
      end
    rescue Exception => e # rubocop:disable Lint/RescueException -- shown below
      errors << [name, e]
    end
  end
  until over?
    sleep 0.5
    in_fork
    Sdb.span("around a restart") do
      Sdb.stop
      Sdb.start(dir: dir, ring: 8 << 20, max_cpu: 0, keep: 3)
    end
  end
  threads.each(&:join)
  failed = Array.new(errors.size) { errors.pop }
  50.times { JOBS.values_at(:nesting, :handles, :enumerators).each { |job| catch(:out) { job.call } } }
  Sdb.begin_span("last", :request, "last", nil, nil, true).finish # ends handles that returned
  sleep 0.05
  status = Sdb.status
  spans = Sdb.open(Sdb.stop).spans.spans
  open = spans.count { |span| span.open && !span.name.match?(/\A(fiber|inner)/) } # of fibers that were dropped
  puts "rounds: #{rounds.map { |name, n| "#{name} #{n}" }.join(", ")}", "#{spans.size} spans in the last log, #{open} open; lost #{status[:lost]}"
  failed.each { |name, error| puts "#{name}: #{error.full_message}" }
  exit failed.empty? && open.zero? && spans.any?
end
