# frozen_string_literal: true

# 25 busy Sidekiq threads with a real Redis, off and on in turn: jobs done, and the memory of the recorded process over
# time. SDB_BENCH_SECONDS: of each turn (60).

$LOAD_PATH.unshift File.expand_path("../../lib", __dir__), File.expand_path("..", __dir__)
require "support/app_server"

class SidekiqBench
  include AppServer

  SECONDS = Integer(ENV.fetch("SDB_BENCH_SECONDS", "60"))
  TURNS = %i[off on on off].freeze

  def run
    @work = Dir.mktmpdir("sdb-bench")
    @rings = File.join(@work, "rings")
    @servers = []
    port = free_port
    start("redis-server", "--port", port.to_s, "--bind", "127.0.0.1", "--dir", @work, "--save", "", port: port, way: nil)
    @env = { "REDIS_URL" => "redis://127.0.0.1:#{port}/0" }
    @redis = TCPSocket.new("127.0.0.1", port)
    @done = { off: 0, on: 0 }
    TURNS.each { |turn| measure(turn) }
    puts format("jobs a second: off %.1f, on %.1f (%+.1f %%)", *rates, ((rates[1] / rates[0]) - 1) * 100)
  ensure
    @servers&.each { |pid| stop(pid, signal: :KILL) }
    FileUtils.rm_rf(@work) if @work
  end

  private

  def rates = @done.values_at(:off, :on).map { |jobs| jobs / (TURNS.size / 2.0 * SECONDS) }

  def measure(turn)
    push(SECONDS * 400)
    pid = start(*bundle("sidekiq", "-r", "./jobs.rb", "-c", "25"), way: turn == :on ? :option : nil, env: settings(turn),
                                                                   chdir: File.join(APPS, "jobs"))
    wait_until("it works") { processed.positive? }
    sleep 4
    before = processed
    memory = Array.new(6) { sleep(SECONDS / 6.0) && rss(pid) }
    @done[turn] += processed - before
    puts format("%-4s %6d jobs in %d s, RSS MB %s", turn, processed - before, SECONDS, memory.map { |kb| kb / 1024 }.join(" "))
    stop(pid, signal: :KILL)
    redis("FLUSHALL")
  end

  # Off, the gem is there all the same: the jobs tag themselves.
  def settings(turn)
    @env.merge("SDB_MAX_CPU" => "0.05").merge(turn == :off ? { "RUBYOPT" => "-I#{ROOT}/lib -rsdb" } : {})
  end

  def rss(pid) = File.read("/proc/#{pid}/status")[/VmRSS:\s+(\d+)/, 1].to_i

  def processed = redis("GET", "stat:processed").to_i

  def push(count)
    code = "require './jobs'; (0...#{count}).each_slice(1000) { |s| TaggedJob.perform_bulk(s.map { |n| [n] }) }"
    system(environment(nil).merge(@env), *bundle("ruby", "-I#{ROOT}/lib", "-rsdb", "-e", code), chdir: File.join(APPS, "jobs"), out: File::NULL, err: File::NULL) or abort "no jobs"
  end

  # One command of Redis' protocol, whose answer is a line or a short string.
  def redis(*words)
    @redis.write("*#{words.size}\r\n#{words.map { |word| "$#{word.bytesize}\r\n#{word}\r\n" }.join}")
    line = @redis.gets.chomp
    line.start_with?("$") && line != "$-1" ? @redis.gets.chomp : line
  end

  def flunk(text) = abort(text)
end

SidekiqBench.new.run if $PROGRAM_NAME == __FILE__
