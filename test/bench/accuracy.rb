# frozen_string_literal: true

# How far the log is from the truth: methods that measure themselves, then the log asked for the same figures.
#
#   ruby -Ilib test/bench/accuracy.rb [--condition idle|saturated|both] [--methods 50] [--scale 1.0]
#        [--interval 0.001] [--json FILE] [--verbose]
#
# Each condition runs in a process of its own: "idle" (nothing of ours beside it), "saturated" (one spinning process a
# core). Phases: one (50 methods on the main thread), fresh (each in a thread of its own), shared (four threads at
# once, waiting for the GVL), states (four threads of different habits against a second clock of states, 3.3+).
# Needs a build with SDB_TESTING. Exits 1 when a target is missed, or with --no-targets never.
require "json"
require "optparse"
require "rbconfig"
require "tmpdir"
require "sdb"
require_relative "workload"

class Accuracy
  TARGETS = { "wall" => 1.0, "cpu" => 2.0, "state" => 1.0 }.freeze # percent
  LEFT_AT_ONCE_NS = 1_000_000

  def initialize(methods:, scale:, interval:)
    @methods = methods
    @scale = scale
    @interval = interval
    @calls = []
    @states = {}
  end

  #: () -> Hash[Symbol, untyped]
  def run
    Dir.mktmpdir("sdb-accuracy") do |dir|
      @recorder = Sdb.start(interval: @interval, dir: dir, max_cpu: 0.0, ring: 256 << 20)
      raise "not recording: #{@recorder.reason}" unless @recorder.running?

      settle
      phases = { "one" => :one, "fresh" => :fresh, "shared" => :shared }.to_h do |name, phase|
        @calls = []
        send(phase)
        [name, @calls]
      end
      states
      @profile = Sdb.open(Sdb.stop)
      answers(phases)
    end
  end

  private

  # Names, YJIT and clocks are warm before anything counts.
  def settle
    Workload::KINDS.each { |kind| Workload.work(kind, 0.02 * @scale) }
  end

  def one
    object, names = Workload.methods("One", @methods, @scale)
    names.each { |name| Workload.call(object, name, @calls) }
  end

  def fresh
    object, names = Workload.methods("Fresh", @methods, @scale)
    names.each { |name| Thread.new { Workload.call(object, name, @calls) }.join }
  end

  def shared
    object, names = Workload.methods("Shared", @methods, @scale / 3)
    names.each_slice((names.size / 4.0).ceil)
         .map { |some| Thread.new { some.each_with_object([]) { |name, calls| Workload.call(object, name, calls) } } }
         .each { |thread| @calls.concat(thread.value) }
  end

  HABITS = {
    "busy" => ->(t) { Workload.ruby_busy(t) },
    "switching" => lambda { |t|
      finish = Workload.wall + (t * 1e9)
      while Workload.wall < finish
        Workload.ruby_busy(0.003)
        sleep 0.005
      end
    },
    "hoarding" => lambda { |t|
      finish = Workload.wall + (t * 1e9)
      while Workload.wall < finish
        Workload.testing.sleep_holding_gvl(0.02)
        Workload.testing.spin_without_gvl(0.02)
      end
    },
    "sleeping" => lambda { |t|
      finish = Workload.wall + (t * 1e9)
      sleep 0.1 * t while Workload.wall < finish
    }
  }.freeze

  def states
    HABITS.map { |name, habit| Thread.new { one_habit(name, habit) } }.each(&:join)
  end

  def one_habit(name, habit)
    Thread.current.name = name
    exact = Workload.testing.state_clock_start
    begin_ns = Workload.wall
    cpu = Workload.cpu # 3.1 gives a new thread the native thread of one that ended, and its clock
    habit.call(8.0 * @scale)
    clock = Workload.testing.state_clock if exact
    @states[name] = { life: Workload.wall - begin_ns, clock: clock, cpu: Workload.cpu - cpu }
  end

  def answers(phases)
    wall = times(:wall)
    cpu = times(:cpu)
    status = Sdb.status
    { ruby: status[:ruby], interval_ns: (@interval * 1e9).to_i, ticks: status[:ticks], late_ticks: status[:late_ticks],
      lost: status[:lost], phases: phases.transform_values { |calls| calls.map { |c| compare(c, wall, cpu) } },
      states: state_answers }
  end

  def times(metric)
    @profile.functions(metric: metric).functions.to_h { |f| [f.name, f.total_ns] }
  end

  def compare(call, wall, cpu)
    log_wall_ns = wall.fetch(call.name, 0)
    { name: call.name, kind: call.kind, wall_ns: truth(call, log_wall_ns), cpu_ns: call.cpu_ns,
      log_wall_ns: log_wall_ns, log_cpu_ns: cpu.fetch(call.name, 0) }
  end

  # A thread that loses the GVL after a method's last look at the clock waits on in the method, or already in its caller:
  # nobody but the log knows, so anything up to that is right.
  def truth(call, log_wall_ns)
    return call.wall_ns if call.left_ns < LEFT_AT_ONCE_NS

    log_wall_ns.clamp(call.wall_ns, call.wall_ns + call.left_ns)
  end

  def state_answers
    threads = @profile.threads.threads.to_h { |t| [t.name, t] }
    @states.map do |name, truth|
      t = threads.fetch(name)
      { name: name, life_ns: truth[:life], clock: truth[:clock], cpu_ns: truth[:cpu], log_cpu_ns: t.cpu_ns,
        log: [t.running_ns + t.gc_ns, t.gvl_wait_ns, t.blocked_ns], unknown_ns: t.unknown_ns, states: t.states }
    end
  end
end

# Runs the conditions and says what came out.
class AccuracyReport
  def initialize(options, out: $stdout)
    @options = options
    @out = out
    @missed = []
  end

  def call
    names = @options[:condition] == "both" ? %w[idle saturated] : [@options[:condition]]
    results = names.to_h { |name| [name, condition(name)] }
    results.each { |name, result| show(name, result) }
    File.write(@options[:json], JSON.pretty_generate(results)) if @options[:json]
    @out.puts(@missed.empty? ? "all targets met" : "missed: #{@missed.join(", ")}")
    @missed.empty? || @options[:no_targets] ? 0 : 1
  end

  private

  def condition(name)
    spinners = name == "saturated" ? Array.new(cores) { spawn(RbConfig.ruby, "--disable-gems", "-e", "loop {}") } : []
    sleep 0.2
    read, write = IO.pipe
    pid = fork do
      read.close
      result = Accuracy.new(**@options.slice(:methods, :scale, :interval)).run
      write.write(JSON.generate(result))
      write.close
      exit!(0)
    end
    write.close
    text = read.read
    Process.wait(pid)
    raise "the measured process failed" unless $?.success?

    JSON.parse(text, symbolize_names: true)
  ensure
    spinners&.each { |spinner| Process.kill(:KILL, spinner) && Process.wait(spinner) }
  end

  def cores = Integer(`nproc`)

  def show(name, result)
    @out.puts "#{name}: Ruby #{result[:ruby]}, #{result[:interval_ns] / 1000} us, #{result[:ticks]} ticks, " \
              "#{result[:late_ticks]} late, lost #{result[:lost]}"
    result[:phases].each do |phase, calls|
      wall = calls.map { |c| error(c[:log_wall_ns], c[:wall_ns], c[:wall_ns]) }
      # what used next to no CPU has none to be wrong about: there the error counts against the time it took
      cpu = calls.map { |c| error(c[:log_cpu_ns], c[:cpu_ns], c[:cpu_ns] * 10 > c[:wall_ns] ? c[:cpu_ns] : c[:wall_ns]) }
      line("#{name} #{phase}", "wall", wall)
      line("#{name} #{phase}", "cpu", cpu)
      show_kinds(calls, wall, cpu)
    end
    show_states(name, result[:states])
  end

  def error(log, truth, base) = base.zero? ? 0.0 : 100.0 * (log - truth) / base

  def line(what, metric, errors)
    mean = errors.sum(&:abs) / errors.size
    sorted = errors.map(&:abs).sort
    target = Accuracy::TARGETS.fetch(metric)
    met = mean <= target
    @missed << "#{what} #{metric}" unless met
    @out.puts format("  %-18s %-5s mean error %6.2f %%  (target %.0f %%%s)  median %.2f  90%% %.2f  max %.2f  bias %+.2f",
                     what, metric, mean, target, met ? "" : ", MISSED", sorted[sorted.size / 2],
                     sorted[(sorted.size * 0.9).floor.clamp(0, sorted.size - 1)], sorted.last, errors.sum / errors.size)
  end

  def show_kinds(calls, wall, cpu)
    calls.each_index.group_by { |i| calls[i][:kind] }.each do |kind, at|
      @out.puts format("    %-10s wall %6.2f %%  bias %+6.2f   cpu %6.2f %%  bias %+6.2f", kind,
                       mean(at.map { |i| wall[i].abs }), mean(at.map { |i| wall[i] }),
                       mean(at.map { |i| cpu[i].abs }), mean(at.map { |i| cpu[i] }))
    end
    return unless @options[:verbose]

    calls.each_with_index do |c, i|
      @out.puts format("      %-12s %-9s wall %8.2f ms log %8.2f (%+6.2f %%)  cpu %8.2f log %8.2f (%+6.2f %%)", c[:name], c[:kind],
                       c[:wall_ns] / 1e6, c[:log_wall_ns] / 1e6, wall[i], c[:cpu_ns] / 1e6, c[:log_cpu_ns] / 1e6, cpu[i])
    end
  end

  def mean(numbers) = numbers.sum / [numbers.size, 1].max

  # Of the life of the thread: a state in which it hardly was has no percentage of its own.
  def show_states(name, states)
    worst = 0.0
    states.each do |t|
      if t[:clock].nil?
        @out.puts format("    %-10s inferred: running %.1f waiting %.1f blocked %.1f ms, cpu %.1f (log %.1f)", t[:name],
                         *t[:log].map { |v| v / 1e6 }, t[:cpu_ns] / 1e6, t[:log_cpu_ns] / 1e6)
        next
      end
      errors = t[:clock].zip(t[:log]).map { |truth, log| error(log, truth, t[:life_ns]) }
      worst = [worst, *errors.map(&:abs)].max
      @out.puts format("    %-10s running %+.3f  gvl_wait %+.3f  blocked %+.3f %% of %.0f ms (unknown %.2f ms)", t[:name], *errors,
                       t[:life_ns] / 1e6, t[:unknown_ns] / 1e6)
    end
    return if states.any? { |t| t[:clock].nil? }

    met = worst <= Accuracy::TARGETS["state"]
    @missed << "#{name} states" unless met
    @out.puts format("  %-18s state worst %.3f %% of a thread's life (target %.0f %%%s)", "#{name} states", worst,
                     Accuracy::TARGETS["state"], met ? "" : ", MISSED")
  end
end

options = { condition: "both", methods: 50, scale: 1.0, interval: 0.001 }
OptionParser.new do |o|
  o.on("--condition NAME", %w[idle saturated both]) { |v| options[:condition] = v }
  o.on("--methods N", Integer) { |v| options[:methods] = v }
  o.on("--scale X", Float) { |v| options[:scale] = v }
  o.on("--interval S", Float) { |v| options[:interval] = v }
  o.on("--json FILE") { |v| options[:json] = v }
  o.on("--verbose") { options[:verbose] = true }
  o.on("--no-targets") { options[:no_targets] = true }
end.parse!(ARGV)
exit AccuracyReport.new(options).call
