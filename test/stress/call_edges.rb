# frozen_string_literal: true

# A program whose call graph is known by construction, recorded at 0.1 ms until SAMPLES stacks of running threads were read;
# then every caller -> callee edge of the log must be in the true graph, and every name must be one of the program's
# (C03). Eight threads: chains of Ruby methods, blocks through C methods, recursion, exceptions, fibers, and a
# collector that compacts.
#   ruby -Ilib test/stress/call_edges.rb [SAMPLES] [DIR]
#   ruby -Ilib test/stress/call_edges.rb record SAMPLES DIR     only records, on a Ruby that cannot read logs
#   ruby -Ilib test/stress/call_edges.rb check RING             only checks
require "sdb"
require "tmpdir"
require "set"

ONLY = %w[record check].include?(ARGV[0]) ? ARGV.shift : nil
SAMPLES = ONLY == "check" ? 0 : Integer(ARGV[0] || 1_000_000)
DIR = ARGV[1] || Dir.mktmpdir("sdb-edges")

# Names as sdb writes them on every Ruby; EDGES[caller] = callees. Built while the program's source is generated, so that
# the truth and the program cannot part.
module Truth
  EDGES = Hash.new { |h, k| h[k] = Set.new }

  def self.edge(caller, *callees) = EDGES[caller].merge(callees)
end

source = +""
# 40 chains of 6 methods: Chain0#a0 -> a1 -> ... each calls the next twice, and a leaf that does almost nothing
40.times do |c|
  source << "class Chain#{c}\n"
  6.times do |m|
    name = "Chain#{c}#a#{m}"
    if m == 5
      source << "  def a5(x) = leaf(x) + leaf(x + 1)\n  def leaf(x) = x & 7\n"
      Truth.edge(name, "Chain#{c}#leaf")
    else
      source << "  def a#{m}(x) = a#{m + 1}(x) + a#{m + 1}(x + 1)\n"
      Truth.edge(name, "Chain#{c}#a#{m + 1}")
    end
  end
  source << "end\n"
end
# two methods that call two different ones in a tight loop: what a scanner joins wrongly when it looks only at depth
source << <<~RUBY
  class Pair
    def left(x) = left_leaf(x)
    def right(x) = right_leaf(x)
    def left_leaf(x) = x + 1
    def right_leaf(x) = x - 1
    def loop_both(n)
      i = 0
      while i < n
        left(i)
        right(i)
        i += 1
      end
    end
    def blocks(n) = n.times.map { |i| one(i) }.each { |v| two(v) }
    def one(x) = [x, x + 1].map { |y| inner_one(y) }
    def two(x) = x.each { |y| inner_two(y) }
    def inner_one(x) = x * 2
    def inner_two(x) = x * 3
    def recurse(n) = n.zero? ? bottom : recurse(n - 1)
    def bottom = 0
    def rescuing(n) = n.times { begin; raising; rescue ArgumentError; rescued; end }
    def raising = raise(ArgumentError)
    def rescued = 1
    def fibers(n) = n.times { f = Fiber.new { in_fiber }; f.resume; f.resume }
    def in_fiber = (before_yield; Fiber.yield; after_yield)
    def before_yield = 20.times { |i| spin(i) }
    def after_yield = 20.times { |i| spin_too(i) }
    def spin(x) = x + 1
    def spin_too(x) = x + 2
    # one call site, several C methods, at one place of the stack
    def polymorphic(n) = n.times { |i| [[1], "ab", { a: 1 }, 1..2][i & 3].send(%i[inspect hash to_s dup][i & 3]) }
    define_method(:defined) { |n| n.times { |i| called_by_defined(i) } }
    def called_by_defined(x) = x + 3
  end
RUBY
EVAL_FILE = "edges_program.rb"
eval(source, TOPLEVEL_BINDING, EVAL_FILE, 1)

# Array#map, Integer#times and friends are C on some versions and Ruby (<internal:>) on others: both are listed
iterators = ["Array#each", "Array#map", "Integer#times", "Enumerator#each", "Enumerable#map", "Enumerator#with_index"]
Truth.edge("Pair#loop_both", "Pair#left", "Pair#right", "Integer#+", "Integer#<")
Truth.edge("Pair#left", "Pair#left_leaf")
Truth.edge("Pair#right", "Pair#right_leaf")
Truth.edge("Pair#blocks", "Integer#times", "Enumerable#map", "Array#each", "Enumerator#map")
Truth.edge("block in Pair#blocks", "Pair#one", "Pair#two")
Truth.edge("Pair#one", "Array#map")
Truth.edge("block in Pair#one", "Pair#inner_one")
Truth.edge("Pair#two", "Array#each")
Truth.edge("block in Pair#two", "Pair#inner_two")
Truth.edge("Pair#recurse", "Pair#recurse", "Pair#bottom", "Integer#zero?")
Truth.edge("Pair#rescuing", "Integer#times")
# its rescue part is a frame of its own, named as the block it is in
Truth.edge("block in Pair#rescuing", "block in Pair#rescuing", "Pair#raising", "Pair#rescued", "Module#===")
Truth.edge("Pair#raising", "Kernel#raise")
Truth.edge("Kernel#raise", "Class#new", "Exception#initialize", "Exception.exception", "Exception#exception", "Exception#backtrace",
           "Exception#set_backtrace", "ArgumentError.exception")
Truth.edge("Exception.exception", "Exception#initialize", "Class#new")
Truth.edge("Class#new", "Exception#initialize", "Fiber#initialize")
Truth.edge("Pair#fibers", "Integer#times")
Truth.edge("block in Pair#fibers", "Class#new", "Fiber#resume", "Fiber.new")
Truth.edge("Fiber.new", "Fiber#initialize")
Truth.edge("block (2 levels) in Pair#fibers", "Pair#in_fiber")
Truth.edge("Pair#in_fiber", "Pair#before_yield", "Pair#after_yield", "Fiber.yield")
Truth.edge("Pair#before_yield", "Integer#times")
Truth.edge("Pair#after_yield", "Integer#times")
Truth.edge("block in Pair#before_yield", "Pair#spin")
Truth.edge("block in Pair#after_yield", "Pair#spin_too")
Truth.edge("Pair#polymorphic", "Integer#times")
Truth.edge("block in Pair#polymorphic", "Array#inspect", "String#hash", "Hash#to_s", "Hash#inspect", "Kernel#dup", "Range#dup", "Array#to_s")
Truth.edge("Pair#defined", "Integer#times")
Truth.edge("block in Pair#defined", "Pair#called_by_defined")
(0...40).each { |c| Truth.edge("block (4 levels) in <main>", "Chain#{c}#a0") }
Truth.edge("block (3 levels) in <main>", "Integer#times", "Array#each", "Pair#loop_both", "Pair#blocks", "Pair#recurse",
           "Pair#rescuing", "Pair#fibers", "Pair#defined", "Pair#polymorphic", "Kernel#loop")
Truth.edge("block (3 levels) in <main>", "Chain0#a0")
# what the iterators call: the blocks of the methods that use them
blocks = Truth::EDGES.keys.select { |k| k.start_with?("block") }
iterators.each do |i|
  Truth.edge(i, *iterators, *blocks, "Integer#succ", "Primitive#attr!", "Integer#<", "Integer#+", "Array#size", "Array#length", "Array#at",
             "Kernel#block_given?", "Kernel#frozen?")
end
# C methods that any Ruby code here may call on its way
operators = %w[Integer#+ Integer#- Integer#* Integer#& Integer#zero? Integer#< Integer#succ]

# Runs the program recorded; [ring, status, seconds, compactions].
record = lambda do
  stop = false
  recorder = Sdb.start(interval: 0.0001, dir: DIR, max_cpu: 0.0, ring: 256 << 20)
  abort "not recording: #{recorder.reason}" unless recorder.running?
  pair = Pair.new
  chains = Array.new(40) { |c| Object.const_get("Chain#{c}").new }
  threads = 8.times.map do |t|
    Thread.new do
      n = t
      until stop
        case (n += 1) % 8
        when 0 then chains.each { |c| c.a0(1) }
        when 1 then pair.loop_both(2000)
        when 2 then pair.blocks(50)
        when 3 then pair.recurse(200)
        when 4 then pair.rescuing(20)
        when 5 then pair.fibers(5); pair.polymorphic(200)
        when 6 then pair.defined(50)
        else chains[0].a0(2)
        end
      end
    end
  end
  beginning = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  compacted = 0
  until Sdb.status[:scans] >= SAMPLES || Process.clock_gettime(Process::CLOCK_MONOTONIC) - beginning > 1500
    sleep 0.2
    GC.compact if GC.respond_to?(:compact)
    compacted += 1
  end
  stop = true
  threads.each(&:join)
  took = Process.clock_gettime(Process::CLOCK_MONOTONIC) - beginning
  path = Sdb.stop
  [path, Sdb.status, took, compacted]
end

# The figures of a ring recorded elsewhere, as Sdb.status would give them.
figures = lambda do |ring|
  counters = Sdb.open(ring).rings.first.counters
  lost = counters.slice(:lost_torn, :lost_torn_top, :lost_gc).transform_keys { |k| k.to_s.delete_prefix("lost_").to_sym }
  { ruby: Sdb.open(ring).rings.first.text["ruby"], scans: counters[:scans], thread_samples: counters[:thread_samples], lost: lost }
end

path, status, took, compacted = ONLY == "check" ? [ARGV[0], figures.call(ARGV[0]), 0, 0] : record.call
if ONLY == "record"
  puts path
  exit
end
ours = ->(name) { name.match?(/Chain\d|Pair/) }
said_unknown = ["(unknown)", "(unresolved)", "(not yet named)", "(no Ruby frames)"] # counted as such, no claim
impossible = Hash.new(0)
bad_names = Hash.new(0)
profile = Sdb.open(path)
check = lambda do |caller|
  caller.children.each do |callee|
    check.call(callee)
    next if said_unknown.include?(caller.name) || said_unknown.include?(callee.name)
    next unless ours.call(caller.name) || ours.call(callee.name)
    next if Truth::EDGES.key?(caller.name) && Truth::EDGES[caller.name].include?(callee.name)
    next if operators.include?(callee.name)

    impossible[[caller.name, callee.name]] += callee.total_ns
  end
end
profile.tree.roots.each { |root| check.call(root) }
known = Truth::EDGES.flat_map { |k, v| [k, *v] }.to_set
profile.functions.functions.each do |f|
  bad_names[f.name] += f.self_ns if f.path == EVAL_FILE && !known.include?(f.name)
  # of C methods the class is right; the VM's own object has none with a name (#<Class>.core#hash_merge_ptr, for a **splat)
  bad_names[f.name] += f.self_ns if f.path.to_s.empty? && !f.name.match?(/\A(?:[A-Z][\w:]*[#.]|#<Class>\.core#)/) && f.name !~ /\A\((?:not yet named|unknown|no Ruby frames|unresolved)\)\z|<main>/
end
samples = status[:thread_samples]
times = profile.functions
unresolved_ns = times.functions.select { |f| f.name == "(unresolved)" }.sum(&:self_ns)
scans = status[:scans]
puts "#{status[:ruby]}: #{samples} thread-samples, #{scans} scans in #{took.round(1)} s, #{compacted} compactions; " \
     "impossible edges #{impossible.size}, wrong names #{bad_names.size}, " \
     "unresolved #{(100.0 * unresolved_ns / times.total_ns).round(4)} % of the time, " \
     "torn #{(100.0 * status[:lost][:torn] / [scans, 1].max).round(4)} %, " \
     "torn_top #{(100.0 * status[:lost][:torn_top] / [scans, 1].max).round(3)} %, lost #{status[:lost]}"
impossible.sort_by { -_2 }.first(20).each { |(a, b), ns| puts "  impossible: #{a} -> #{b}  #{ns / 1000} us" }
bad_names.first(20).each { |name, ns| puts "  wrong name: #{name.inspect} #{ns / 1000} us" }
exit(impossible.empty? && bad_names.empty? ? 0 : 1)
