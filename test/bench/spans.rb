# frozen_string_literal: true

# What spans, tags and fiber switches cost the app: ns each, median of bursts with pauses in which the scanner takes
# what was queued (a program that does nothing but begin and end spans would only measure a full queue).

require "tmpdir"
require "sdb"

BURST = 100
BURSTS = Integer(ENV.fetch("SDB_BENCH_BURSTS", "300"))
TARGET_NS = 1000

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

# Median over bursts of the time of one call.
def measure
  times = Array.new(BURSTS) do
    sleep 0.003
    from = now
    yield BURST
    (now - from) / BURST.to_f
  end
  times.sort[times.size / 2]
end

def cases
  ids = Array.new(BURST) { |n| "request-#{n}" }
  {
    "span" => ->(n) { n.times { Sdb.span("work") { nil } } },
    "span with id and kind" => ->(n) { n.times { |i| Sdb.span("work", kind: :request, id: ids[i]) { nil } } },
    "span with two tags" => ->(n) { n.times { Sdb.span("work", customer: 7, plan: "free") { nil } } },
    "three spans in another, each" => ->(n) { (n / 4).times { Sdb.span("a") { 3.times { Sdb.span("b") { nil } } } } },
    "tag" => ->(n) { n.times { Sdb.tag(customer: 7) { nil } } },
    "Sdb.tags" => ->(n) { n.times { Sdb.tags } }
  }
end

def fiber_switches(n)
  fiber = Fiber.new { loop { Fiber.yield } }
  (n / 2).times { fiber.resume }
end

def report(title, loop_ns)
  puts title
  cases.each { |name, body| puts format("  %-30<name>s %7.0<ns>f ns", name: name, ns: measure(&body) - loop_ns) }
end

empty = measure { |n| n.times { nil } }
puts "ruby #{RUBY_VERSION}#{" +YJIT" if defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?}, #{BURSTS} bursts of #{BURST}; " \
     "the loop itself (#{empty.round} ns) is subtracted"
report("nothing recorded, recorder not loaded", empty)
ok = Dir.mktmpdir do |dir|
  Sdb.start(dir: dir, ring: 16 << 20, max_cpu: 0)
  abort Sdb.status[:reason] unless Sdb.status[:state] == "running"
  report("recording", empty)
  span = measure(&cases.fetch("span")) - empty
  before = measure { |n| fiber_switches(n) }
  Fiber.new { Sdb.span("first in a fiber") { nil } }.resume
  after = measure { |n| fiber_switches(n) }
  inside = Sdb.span("request") { measure { |n| fiber_switches(n) } }
  puts format("fiber switch: %.0<a>f ns; %.0<b>f ns once spans were used in a fiber; %.0<c>f ns inside a span",
              a: before, b: after, c: inside)
  lost = Sdb.status[:lost][:queue_full]
  puts "events lost: #{lost}"
  Sdb.stop
  report("recorder loaded and stopped", empty)
  span <= TARGET_NS && lost.zero?
end
puts ok ? "within the target: a span costs at most #{TARGET_NS} ns, nothing lost" : "OVER the target of #{TARGET_NS} ns, or events lost"
exit ok
