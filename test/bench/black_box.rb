# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# black_box.rb - what the black box costs: the probes per signal and per exit, a capture's bytes and time, a
# dump's time. Root; `rake bench:black_box`. Prints a line a figure.

require "bpf/support"
require "json"

class BlackBoxBench
  include BlackBox::Setup

  SIGNALS = 200_000
  STATS = "/proc/sys/kernel/bpf_stats_enabled"
  SHAPES = [[1, 20], [6, 50], [21, 100], [101, 200], [101, 292]].freeze

  def skip(reason)
    puts "SKIP bench:black_box: #{reason}"
    exit 0
  end

  def call
    setup
    signals
    captures
    probes
  ensure
    teardown
  end

  private

  # A signal to a process that ignores it, with the probes and without: most signals of a machine are of no interest to them.
  def signals
    without = signal_ns
    daemon
    process = victim("sleep")
    with = signal_ns
    puts format("signal: %d ns without probes, %d ns with (kill(2), best of 5)", without, with)
    process.finish
  end

  def signal_ns
    with_deaf_process do |pid|
      Array.new(5) do
        start = now
        SIGNALS.times { Process.kill(:USR1, pid) }
        (now - start) / SIGNALS
      end.min
    end
  end

  def with_deaf_process
    pid = spawn("sh", "-c", "trap '' USR1; exec sleep 600")
    sleep 0.2
    yield pid
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def captures
    SHAPES.each do |threads, frames|
      dumps = Array.new(5) do
        process = victim("sleep", threads: threads, frames: frames)
        process.kill
        process.wait
        daemon.dump_of(process.pid)
      end
      ns = dumps.map { |dump| dump.number(:capture_ns) }.sort
      puts format("capture: %d threads x %d frames: %d bytes, %d us (median of 5; worst %d)", threads, frames,
                  dumps.last.number(:capture_bytes), ns[2] / 1000, ns.last / 1000)
    end
    times = File.read(daemon.log).scan(/complete, (\d+) ms/).flatten.map(&:to_i).sort
    puts format("dump of a ring of 4 MiB: %d ms (median of %d; worst %d)", times[times.size / 2], times.size, times.last)
  end

  # The kernel's own account of each program.
  def probes
    File.write(STATS, "1")
    with_deaf_process { |pid| SIGNALS.times { Process.kill(:USR1, pid) } }
    8.times do
      process = victim("sleep", threads: 21, frames: 100)
      process.kill
      process.wait
      daemon.dump_of(process.pid)
    end
    JSON.parse(`/usr/sbin/bpftool prog show -j`).each do |prog|
      next unless prog["name"].to_s.start_with?("sdb_p") && prog["run_cnt"].to_i.positive?

      puts format("probe %s: %d runs, %d ns each", prog["name"], prog["run_cnt"], prog["run_time_ns"] / prog["run_cnt"])
    end
  ensure
    File.write(STATS, "0")
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

BlackBoxBench.new.call if $PROGRAM_NAME == __FILE__
