# frozen_string_literal: true

# What a recording costs a real app under load: servers alive side by side, each condition against "off" in turns
# A B B A of a second, so that what the machine does meanwhile hits both; off against off is the control, off beside an
# empty 1 kHz loop on its core the floor of every sampler (the loop's own CPU counts as a sampler's own does). Then a
# fixed rate, for the tail of the latency.
#
#   ruby -Ilib test/bench/overhead.rb [--app shop|redmine] [--cores one|free] [--pairs 100] [--rate-seconds 20]
#
# one: the server on one core that it saturates, the clients on another. free: the server may use both, the load is
# one client's. CPU is counted in ns by the kernel. Printed are medians over the pairs with 95 % intervals (bootstrap).
# redmine: inside the folder of `rake test:redmine` (rake bench:overhead_redmine).
require "etc"
require "fileutils"
require "net/http"
require "optparse"
require "rbconfig"
require "socket"
require "tmpdir"
require "sdb"
require "sdb/ring"

module Overhead
  ROOT = File.expand_path("../..", __dir__)
  SETTINGS = {
    "off" => {}, "control" => {}, "floor" => {},
    "1 ms" => { "SDB_INTERVAL" => "1ms", "SDB_MAX_CPU" => "0" },
    "default" => {}
  }.freeze
  RECORDED = ["1 ms", "default"].freeze

  module_function

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # ns that a process used; with a name only of threads that have it
  def cpu_ns(pid, comm = nil)
    Dir["/proc/#{pid}/task/*"].sum do |task|
      next 0 if comm && File.read("#{task}/comm").chomp != comm

      File.read("#{task}/schedstat").to_i
    rescue SystemCallError
      0
    end
  end

  # The app's command and what is asked of it.
  APPS = {
    "shop" => lambda { |port, work|
      dir = File.join(ROOT, "test/apps/shop")
      [{ "RAILS_ENV" => "production", "SHOP_DATABASE" => File.join(work, "shop-#{port}.sqlite3") },
       ["bundle", "exec", "puma", "-q", "-b", "tcp://127.0.0.1:#{port}", "-t", "5:5", File.join(dir, "config.ru")], dir]
    },
    "redmine" => lambda { |port, _|
      [{ "RAILS_ENV" => "production" }, ["puma", "-q", "-b", "tcp://127.0.0.1:#{port}", "-t", "5:5", "-e", "production", "config.ru"],
       "/usr/share/redmine"]
    }
  }.freeze
  PATHS = {
    "shop" => ["/products", *(1..9).map { |n| "/products/#{n}" }],
    "redmine" => ["/projects/project-1/issues", "/issues/5", "/issues/77", "/projects/project-0/wiki", "/projects"]
  }.freeze

  # A server under load, and what its kernel threads used.
  class Server
    attr_reader :pid, :name

    def initialize(name, app, work, cpus)
      @name = name
      @app = app
      @port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      env, command, dir = APPS.fetch(app).call(@port, work)
      @rings = File.join(work, "rings")
      env = { "RUBYOPT" => nil, "SDB" => nil, "BUNDLER_SETUP" => nil }.merge(env)
      env.update(SETTINGS.fetch(name), "SDB_DIR" => @rings, "RUBYOPT" => "-I#{ROOT}/lib -rsdb/auto") if RECORDED.include?(name)
      @pid = spawn(env, "taskset", "-c", cpus, *command, chdir: dir, in: File::NULL, out: (log = "#{work}/#{name.tr(" ", "-")}.log"), err: log)
      wait(log)
    end

    def wait(log)
      600.times do
        return TCPSocket.open("127.0.0.1", @port).close
      rescue SystemCallError
        abort "#{name} ended:\n#{File.read(log)}" if Process.wait(@pid, Process::WNOHANG)
        sleep 0.1
      end
      abort "#{name} does not listen:\n#{File.read(log)}"
    end

    def connect = Client.new(@port, PATHS.fetch(@app))

    def cpu_ns(comm = nil) = Overhead.cpu_ns(@pid, comm)

    # What the governor had come to when it last wrote it down.
    def interval_ns
      Dir["#{@rings}/#{@pid}-*.sdb"].map { |path| Sdb::Ring.read(path) }.max_by(&:start_monotonic_ns).counters.fetch(:effective_interval_ns)
    end

    def stop
      Process.kill(:KILL, @pid)
      Process.wait(@pid)
    end
  end

  # A connection that is kept, asking one thing after another.
  class Client
    def initialize(port, paths)
      @http = Net::HTTP.new("127.0.0.1", port)
      @http.keep_alive_timeout = 10 # shorter than a server's, which closes what was quiet while others had their turn
      @http.start
      @paths = paths
      @broken = 0
      @number = rand(paths.size)
    end

    attr_reader :broken, :paths

    # Puma 7.2 and 8.0 on 3.1.2 were seen to send an answer without the begin of its head, from servers that record
    # nothing: counted, and the connection made anew.
    def ask
      response = @http.get(@paths[(@number += 1) % @paths.size])
      abort "not an answer: #{response.code} #{response.body[0, 200]}" unless response.is_a?(Net::HTTPSuccess)
    rescue Net::HTTPBadResponse
      @broken += 1
      @http.finish
      @http.start
    end
  end

  Slice = Struct.new(:requests, :latency_ns, :cpu_ns, :scanner_ns, :seconds, keyword_init: true) do
    def cpu_per_request = cpu_ns.fdiv(requests)
    def throughput = requests / seconds
    def mean_latency = latency_ns.fdiv(requests)
    def scanner_a_second = scanner_ns / seconds
  end

  class Bench
    def initialize(app:, cores:, pairs:, rate_seconds:, slice: 1.0)
      @app = app
      @cores = cores
      @pairs = pairs
      @rate_seconds = rate_seconds
      @slice = slice
      @clients = cores == "one" ? 4 : 1
    end

    def run
      @work = Dir.mktmpdir("sdb-overhead")
      build_loop
      @server_cpus = @cores == "one" ? "0" : "0,1"
      system("taskset", "-p", "-c", "1", Process.pid.to_s, out: File::NULL) if @cores == "one"
      @servers = ["off", "control", *RECORDED].to_h { |name| [name, Server.new(name, @app, @work, @server_cpus)] }
      @servers["floor"] = @servers["control"]
      @connections = @servers.transform_values { |server| Array.new(@clients) { server.connect } }
      @servers.each_key { |name| 3.times { slice(name) } } # warm
      puts "#{@app}, Ruby #{RUBY_VERSION}, #{@cores == "one" ? "server on one saturated core" : "a core free for the scanner"}, " \
           "#{@pairs} pairs of #{@slice} s, #{@clients} clients"
      compare
      fixed_rate if @rate_seconds.positive?
      broken = @connections.transform_values { |clients| clients.compact.sum(&:broken) }.select { |_, count| count.positive? }
      puts "  answers without a head: #{broken}" if broken.any?
    ensure
      @servers&.values&.uniq&.each(&:stop)
      FileUtils.rm_rf(@work) if @work
    end

    private

    def build_loop
      @loop = File.join(@work, "empty_loop")
      system("cc", "-O2", "-o", @loop, File.join(__dir__, "empty_loop.c")) or abort "cc cannot build empty_loop.c"
    end

    def slice(name, seconds = @slice)
      server = @servers.fetch(name)
      floor = spawn("taskset", "-c", @server_cpus, @loop, (seconds + 0.3).to_s, out: File::NULL) if name == "floor"
      sleep 0.05 if floor
      own = Overhead.cpu_ns(floor) if floor
      cpu = server.cpu_ns
      scanner = server.cpu_ns("sdb scanner")
      begin_s = Overhead.now
      totals = @connections.fetch(name).map { |client| Thread.new { ask(client, begin_s + seconds) } }.map(&:value)
      took = Overhead.now - begin_s
      cpu = server.cpu_ns - cpu
      cpu += Overhead.cpu_ns(floor) - own if floor
      Slice.new(requests: totals.sum(&:first), latency_ns: totals.sum(&:last), cpu_ns: cpu,
                scanner_ns: server.cpu_ns("sdb scanner") - scanner, seconds: took)
    ensure
      Process.wait(floor) if floor
    end

    # [requests, ns that they took in all]. Each path as often as the others: they cost more or less than each other.
    def ask(client, finish)
      count = 0
      spent = 0
      while (from = Overhead.now) < finish || count % client.paths.size != 0
        client.ask
        spent += ((Overhead.now - from) * 1e9).to_i
        count += 1
      end
      [count, spent]
    end

    def compare
      pairs = Hash.new { |hash, name| hash[name] = [] }
      (@pairs / 2).times do
        ["control", "floor", *RECORDED].each do |name|
          a, b, c, d = ["off", name, name, "off"].map { |each| slice(each) }
          pairs[name] << [a, b] << [d, c]
        end
      end
      pairs.each { |name, rows| tell(name, rows) }
    end

    FIGURES = { cpu_per_request: "CPU per request", throughput: "throughput", mean_latency: "mean latency" }.freeze

    def tell(name, rows)
      words = FIGURES.map do |figure, label|
        ratios = rows.map { |off, on| 100 * ((on.public_send(figure) / off.public_send(figure)) - 1) }
        format("%s %+6.2f %% [%+.2f, %+.2f]", label, median(ratios), *interval(ratios))
      end
      own = rows.map { |_, on| on.scanner_a_second }
      words << format("scanner %.1f ms CPU/s", median(own) / 1e6) if own.any?(&:positive?)
      words << format("interval %g ms", @servers.fetch(name).interval_ns / 1e6) if RECORDED.include?(name)
      puts format("  %-8s %s", name, words.join("  "))
      $stdout.flush
    end

    # Requests at set times, whoever is late: latency counts from when each was due.
    def fixed_rate
      rate = slice("off", 3.0).throughput / 2
      latencies = Hash.new { |hash, name| hash[name] = [] }
      names = ["off", "control", *RECORDED]
      (@rate_seconds / 2.0).ceil.times { |round| names.rotate(round).each { |name| latencies[name].concat(at_rate(name, rate, 2.0)) } }
      puts format("  at %.0f requests a second, ms:", rate)
      latencies.each do |name, all|
        sorted = all.sort
        puts format("  %-8s %s  of %d", name, [0.5, 0.9, 0.99, 0.999].map { |q| format("p%g %.2f", q * 100, sorted[(q * (sorted.size - 1)).round] * 1e3) }.join("  "), all.size)
      end
    end

    def at_rate(name, rate, seconds)
      begin_s = Overhead.now + 0.01
      due = Queue.new
      (rate * seconds).to_i.times { |n| due << (begin_s + (n / rate)) }
      workers = Array.new(4) { |n| @connections[name][n] ||= @servers.fetch(name).connect }
      workers.map { |client| Thread.new { take(client, due) } }.flat_map(&:value)
    end

    def take(client, due)
      latencies = []
      loop do
        at = due.pop(true)
        wait = at - Overhead.now
        sleep wait if wait.positive?
        client.ask
        latencies << (Overhead.now - at)
      end
    rescue ThreadError # nothing left
      latencies
    end

    def median(values)
      sorted = values.sort
      middle = sorted.size / 2
      sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    end

    # Of the median, 95 %.
    def interval(values)
      random = Random.new(1)
      medians = Array.new(2000) { median(Array.new(values.size) { values[random.rand(values.size)] }) }.sort
      [medians[50], medians[1949]]
    end
  end
end

options = { app: "shop", cores: "one", pairs: 100, rate_seconds: 20 }
OptionParser.new do |o|
  o.on("--app NAME", Overhead::APPS.keys) { |v| options[:app] = v }
  o.on("--cores WHICH", %w[one free]) { |v| options[:cores] = v }
  o.on("--pairs N", Integer) { |v| options[:pairs] = v }
  o.on("--rate-seconds S", Integer) { |v| options[:rate_seconds] = v }
end.parse!(ARGV)
Overhead::Bench.new(**options).run
