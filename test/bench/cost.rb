# frozen_string_literal: true

# What a recording costs. Each round runs every case once, one after another, so that what the machine does meanwhile
# hits all of them; printed are the medians over the rounds and the lowest and highest.
#   ruby -Ilib test/bench/cost.rb [ROUNDS] [SECONDS]      (rake bench:cost; smaller figures for a smoke test)
# Cases run in processes of their own. CPU is counted in ns by the kernel (schedstat), not in seconds of a clock.
require "json"
require "rbconfig"
require "tmpdir"

module Cost
  LIB = File.expand_path("../../lib", __dir__)
  SCANNER = "sdb scanner"

  module_function

  def clock(id = Process::CLOCK_MONOTONIC) = Process.clock_gettime(id, :nanosecond)

  # [CPU ns, voluntary switches] of the scanner of a process.
  def scanner_figures(pid)
    dir = "/proc/#{pid}/task/#{scanner_tid(pid)}"
    [File.read("#{dir}/schedstat").split[0].to_i, File.read("#{dir}/status")[/^voluntary_ctxt_switches:\s+(\d+)/, 1].to_i]
  end

  # It names itself when it begins.
  def scanner_tid(pid = "self")
    1000.times do
      dir = Dir["/proc/#{pid}/task/*"].find { |task| File.read("#{task}/comm").strip == SCANNER } and return File.basename(dir)
      sleep 0.001
    end
    abort "no scanner in #{pid}"
  end

  def start(**options)
    require "sdb"
    recorder = Sdb.start(dir: Dir.mktmpdir("sdb-cost"), ring: 16 << 20, max_cpu: 0, **options)
    abort recorder.reason unless recorder.running?
    at_exit { FileUtils.rm_rf(File.dirname(recorder.path.to_s)) }
  end

  def deep(n, &work) = n.zero? ? work.call : deep(n - 1, &work)
  def leaf(x) = x + 1

  # The process that `scanner` looks at: threads that stand at `depth` and either work or sleep. Says where its log is.
  def crowd(threads, depth, busy)
    start
    gate = Queue.new
    threads.times { Thread.new { deep(depth) { gate.pop || (busy ? loop { 50.times { |i| leaf(i) } } : sleep) } } }
    sleep 0.01 until gate.num_waiting == threads
    $stdout.puts Sdb.status[:ring]
    $stdout.flush
    gate.close
    sleep
  end

  # The scanner's own CPU a second, and what it wrote. From outside: beside 100 busy threads one more would wait for the
  # GVL for ten seconds.
  def scanner(threads, depth, busy, seconds)
    app = IO.popen([RbConfig.ruby, "-I#{LIB}", __FILE__, "case", JSON.generate([:crowd, threads, depth, busy])])
    ring = app.gets.chomp
    sleep 1.1 # the log begins with everybody's stack, and its figures are written each second
    wrote = Sdb::Ring.read(ring).counters
    before, switches = scanner_figures(app.pid)
    began = clock
    sleep seconds
    after, switches_after = scanner_figures(app.pid)
    took = (clock - began) / 1e9
    sleep 1.1
    now = Sdb::Ring.read(ring).counters
    bytes, samples, records = %i[bytes_written thread_samples sample_records].map { |name| now[name] - wrote[name] }
    { cpu: (after - before) / took, wakeups: (switches_after - switches) / took,
      bytes_a_thread_sample: (bytes / samples.to_f if samples.positive?),
      bytes_a_record: (bytes / records.to_f if records.positive?) }
  ensure
    Process.kill(:KILL, app.pid)
    app.close
    FileUtils.rm_rf(File.dirname(ring))
  end

  # Share of its speed that a spinning thread loses, scanner on that core or on another: slices with and without.
  def displaced(same_core, seconds)
    require "sdb"
    dir = Dir.mktmpdir("sdb-cost")
    system("taskset", "-p", "-c", "0", Process.pid.to_s, out: File::NULL) or return { lost: 0.0 }
    work = lambda do |ns|
      till = clock + ns
      n = 0
      (n += 1; 500.times { |i| leaf(i) }) while clock < till
      n
    end
    lost = Array.new([(seconds / 0.3).round, 4].max) do
      Sdb.start(dir: dir, ring: 4 << 20, max_cpu: 0, interval: 0.001)
      system("taskset", "-p", "-c", same_core ? "0" : "1", scanner_tid, out: File::NULL)
      with = work.call(100_000_000)
      Sdb.stop
      without = work.call(100_000_000)
      1 - with / without.to_f
    end
    FileUtils.rm_rf(dir)
    { lost: lost.sort[lost.size / 2] * 100 }
  end

  # GVL time that naming 1000 new methods takes.
  def naming
    start(interval: 0.0001)
    3.times do |round|
      eval(Array.new(400) { |i| "def cost_#{round}_#{i}(n) = n.zero? ? sleep(0.0004) : cost_#{round}_#{i}(n - 1)" }.join("\n"), TOPLEVEL_BINDING)
      400.times { |i| TOPLEVEL_BINDING.receiver.send("cost_#{round}_#{i}", 2) }
    end
    sleep 0.3
    Sdb.stop
    status = Sdb.status
    { gvl_ns_a_1000_methods: status[:cost][:gvl_ns] * 1000.0 / [status[:symbols][:count], 1].max, named: status[:symbols][:count] }
  end

  def empty_loop(seconds)
    dir = Dir.mktmpdir("sdb-cost")
    system(ENV.fetch("CC", "cc"), "-O1", "#{__dir__}/empty_loop.c", "-o", "#{dir}/loop", exception: true)
    cpu, ticks = IO.popen(["#{dir}/loop", seconds.to_s], &:read).split.map(&:to_f)
    FileUtils.rm_rf(dir)
    { cpu: cpu, wakeups: ticks }
  end

  def cases(seconds)
    grid = [0, 1, 8, 100].product([10, 150, 1000], [true, false])
    grid.reject! { |threads, depth, busy| threads.zero? && (depth != 10 || busy) }
    [[:empty_loop, seconds]] + grid.map { |t, d, b| [:scanner, t, d, b, seconds] } +
      [[:scanner, 1000, 10, false, seconds], [:displaced, true, seconds], [:displaced, false, seconds], [:naming]]
  end

  def label(kind, *rest)
    case kind
    when :empty_loop then "an empty 1 kHz loop"
    when :scanner then "#{rest[0]} threads#{", depth #{rest[1]}, #{rest[2] ? "busy" : "idle"}" if rest[0].positive?}"
    when :displaced then "a spinning app, scanner on #{rest[0] ? "its own" : "another"} core"
    when :naming then "naming new methods"
    end
  end

  def drive(rounds, seconds)
    results = Hash.new { |h, k| h[k] = [] }
    rounds.times do |round|
      cases(seconds).each do |one|
        $stderr.print("\rround #{round + 1}/#{rounds}: #{label(*one)}".ljust(79)) if $stderr.tty?
        result = measure(one)
        # beside its own floor: the same loop costs 40 % more or less a minute later on a machine that others use
        result[:ratio] = result[:cpu] / measure([:empty_loop, seconds])[:cpu] if one[0] == :scanner && one[3]
        results[one] << result
      end
    end
    $stderr.print("\r#{" " * 79}\r") if $stderr.tty?
    report(results)
  end

  def measure(one)
    out = IO.popen([RbConfig.ruby, "-I#{LIB}", __FILE__, "case", JSON.generate(one)], err: File::NULL, &:read)
    JSON.parse(out, symbolize_names: true)
  end

  def spread(values, unit, scale = 1.0)
    sorted = values.map { |v| v / scale }.sort
    format("%9.2f %s [%.2f .. %.2f]", sorted[sorted.size / 2], unit, sorted.first, sorted.last)
  end

  def report(results)
    puts "Ruby #{RUBY_VERSION}, #{results.values.first.size} rounds; median [lowest .. highest]"
    results.each do |one, rows|
      name = label(*one).ljust(44)
      if rows[0][:cpu]
        ratio = "#{spread(rows.map { |r| r[:ratio] }, "x the empty loop").strip}, " if rows[0][:ratio]
        puts "#{name} #{spread(rows.map { |r| r[:cpu] }, "ms CPU/s", 1e6)}  #{ratio}" \
             "#{rows[0][:wakeups].round} wake-ups/s#{format(", %.2f bytes a thread-sample", rows[0][:bytes_a_thread_sample]) if rows[0][:bytes_a_thread_sample]}" \
             "#{format(", %.1f a record", rows[0][:bytes_a_record]) if rows[0][:bytes_a_record]}"
      elsif rows[0][:lost]
        puts "#{name} #{spread(rows.map { |r| r[:lost] }, "% slower")}"
      else
        puts "#{name} #{spread(rows.map { |r| r[:gvl_ns_a_1000_methods] }, "ms of GVL per 1000", 1e6)}, #{rows[0][:named]} named"
      end
    end
  end
end

if ARGV[0] == "case"
  require "fileutils"
  $LOAD_PATH.unshift Cost::LIB
  require "sdb/ring"
  kind, *rest = JSON.parse(ARGV[1])
  puts JSON.generate(Cost.send(kind, *rest))
else
  Cost.drive(Integer(ARGV[0] || 5), Float(ARGV[1] || 2))
end
