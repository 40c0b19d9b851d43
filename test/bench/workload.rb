# frozen_string_literal: true

# Work whose time is known: each method reads the clocks first and last, and keeps what passed between.
module Workload
  KINDS = %i[ruby_busy c_busy c_sleep sleep off_gvl].freeze
  # wall_ns, cpu_ns: between the method's first look at the clocks and its last; left_ns: from then until its caller was back.
  Call = Struct.new(:name, :kind, :wall_ns, :cpu_ns, :left_ns)

  module_function

  # ns by the clock that nothing here shares with the recorder but the kernel's.
  def wall = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)

  # Does `kind` of work for about so many seconds.
  def work(kind, seconds)
    case kind
    when :ruby_busy then ruby_busy(seconds)
    when :c_busy then testing.spin_holding_gvl(seconds)
    when :c_sleep then testing.sleep_holding_gvl(seconds)
    when :sleep then sleep(seconds)
    when :off_gvl then testing.spin_without_gvl(seconds)
    end
  end

  def ruby_busy(seconds)
    finish = cpu + (seconds * 1e9).to_i
    x = 0
    until cpu >= finish
      i = 0
      while i < 200
        x += i
        i += 1
      end
    end
  end

  def testing = Sdb.const_get(:Native)::Testing

  # A class `name` with `count` methods m00, m01 ... of 5 to 900 ms x scale; kinds take turns, lengths are mixed.
  # Returns [object, method names]; each takes the Array that gets its Call.
  def methods(name, count, scale)
    type = Object.const_set(name, Class.new)
    names = Array.new(count) do |i|
      seconds = (5 + 895.0 * ((i * 7) % count) / [count - 1, 1].max) * scale / 1000
      kind = KINDS[i % KINDS.size]
      method = format("m%02d", i)
      type.class_eval(<<~RUBY, "workload_#{name.downcase}.rb", 1)
        def #{method}(calls)
          wall = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
          cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
          Workload.work(:#{kind}, #{seconds})
          cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) - cpu
          finish = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
          calls << Workload::Call.new("#{name}##{method}", :#{kind}, finish - wall, cpu, -finish)
        end
      RUBY
      method
    end
    [type.new, names]
  end

  def call(object, name, calls)
    object.public_send(name, calls)
    calls.last.left_ns += wall
  end
end
