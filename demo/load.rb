# frozen_string_literal: true

# Real load on the demo app from a process of its own: eight people who click one after the other, and the payment
# service that the checkout waits for.
#
#   ruby demo/load.rb PORT PAYMENT_PORT SECONDS
#
# Prints a line each second, and at the end how long each kind of request took.

require "net/http"
require "socket"

class Load
  PEOPLE = 8
  # What people do and how often, out of 100.
  MIX = { index: 40, show: 25, popular: 15, checkout: 12, report: 8 }.freeze

  def initialize(port, payment_port, seconds)
    @port = port
    @payment = TCPServer.new("127.0.0.1", payment_port)
    @seconds = seconds
    @times = Hash.new { |hash, kind| hash[kind] = [] }
    @errors = 0
    @lock = Mutex.new
  end

  def call
    serve_payments
    stop_at = now + @seconds
    people = Array.new(PEOPLE) { |i| Thread.new { click(Random.new(i), stop_at) } }
    watch(stop_at)
    people.each(&:join)
    report
    # some that fail are counted and told; what was recorded is worth looking at all the same
    @errors * 10 > @times.values.sum(&:size) ? 1 : 0
  end

  private

  # Answers after 60 to 160 ms, as many at once as are asked for.
  def serve_payments
    Thread.new do
      loop do
        Thread.new(@payment.accept) do |socket|
          socket.gets
          sleep(rand(0.06..0.16))
          socket.puts("paid")
          socket.close
        end
      end
    end
  end

  def click(random, stop_at)
    session(random, stop_at) while now < stop_at
  end

  # Until a connection breaks, or the time is over.
  def session(random, stop_at)
    Net::HTTP.start("127.0.0.1", @port, read_timeout: 30) do |http|
      while now < stop_at
        kind = pick(random.rand(100))
        start = now
        ok = request(http, kind, random).is_a?(Net::HTTPSuccess)
        @lock.synchronize { ok ? @times[kind] << now - start : @errors += 1 }
        sleep(random.rand(0.02))
      end
    end
  rescue SystemCallError, IOError, Timeout::Error, Net::HTTPBadResponse => e
    @lock.synchronize { @errors += 1 }
    warn "load: #{e.class}: #{e.message}"
    sleep 0.1
  end

  def pick(number)
    MIX.each { |kind, share| return kind if (number -= share).negative? }
  end

  def request(http, kind, random)
    case kind
    when :index then http.get("/posts")
    when :show then http.get("/posts/#{random.rand(1..60)}")
    when :popular then http.get("/popular")
    when :report then http.get("/report?from=#{random.rand(12)}")
    when :checkout then http.post("/checkout", "cents=#{random.rand(100..9000)}")
    end
  end

  def watch(stop_at)
    while (left = stop_at - now).positive?
      sleep([1, left].min)
      done = @lock.synchronize { @times.values.sum(&:size) }
      puts format("  %2d s  %5d requests", @seconds - [stop_at - now, 0].max.round, done)
      $stdout.flush
    end
  end

  def report
    puts format("  %-10s %8s %10s %10s", "request", "count", "median", "slowest")
    @times.sort.each do |kind, times|
      sorted = times.sort
      puts format("  %-10s %8d %7.1f ms %7.1f ms", kind, sorted.size, sorted[sorted.size / 2] * 1000, sorted.last * 1000)
    end
    puts "  #{@errors} failed" if @errors.positive?
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

exit Load.new(*ARGV.map { |arg| Integer(arg) }).call if $PROGRAM_NAME == __FILE__
