# frozen_string_literal: true

require_relative "story"

module RingEncoder
  # Turns a Story into the chunks, symbol area and state page that the recorder would have written.
  class Compiler
    # What is known of a thread at its previous SAMPLE.
    Progress = Struct.new(:sampled_ns, :moment, :since_ns)

    def initialize(story)
      @story = story
      @file = story.file
      @progress = {}
      @chunks = 0
      @samples = 0
    end

    def compile
      write_symbols
      ticks = tick_times
      pending = @story.events.sort_by.with_index { |event, n| [event.at, n] }
      past = []
      rolls = @story.rolls.sort
      previous = nil
      ticks.each do |now|
        roll = previous.nil? || (rolls.first && rolls.first <= now)
        rolls.shift if roll && previous
        roll ? begin_chunk(now, previous) : write_tick(now, previous)
        write_threads(now, roll)
        repeat_lasting(past, now) if roll
        while pending.first && pending.first.at <= now
          past << pending.first
          pending.shift.write.call(@chunk)
        end
        write_samples(now, roll)
        previous = now
      end
      end_chunk
      write_state(ticks)
      @file
    end

    private

    def tick_times
      moments = @story.threads.each_value.flat_map { |t| t.moments.keys }
      last = @story.last_ns || moments.max || 0
      times = (0..last).step(@story.interval_ns).to_a + moments + [last]
      times += @story.silences.flat_map { |from, to, _| [from, to] }
      times.uniq.sort.reject { |t| @story.silences.any? { |from, to, _| t > from && t < to } }
    end

    # Its first tick is `now` itself; what no thread could see before it stands in the chunk before.
    def begin_chunk(now, previous)
      if @chunk
        write_silence(now, previous)
        end_chunk
      end
      @chunk = ChunkRecords.new(@chunks, block_bytes: @story.block_bytes)
      @sampled_slots = {}
      @first_ns = now
      @chunks += 1
      @chunk.interval(@story.interval_ns / 1000)
      write_clock(now)
    end

    def write_tick(now, previous)
      write_silence(now, previous)
      @chunk.tick((now - previous) / 1000)
      write_clock(now) if now - @clock_ns >= 1_000_000_000
    end

    def write_clock(now)
      @chunk.clock(now, @file.identity[:start_realtime_ns] + now)
      @clock_ns = now
    end

    def write_silence(now, previous)
      from, to, reason = @story.silences.find { |f, t, _| t == now && f == previous }
      return unless from

      reason ? @chunk.gap((to - from) / 1000, reason) : @chunk.park
    end

    # Open spans, and what threads work for and their tags, as they stand.
    def repeat_lasting(past, now)
      lasting = past.select { |event| event.until > now }
      lasting.each { |event| event.write.call(@chunk) if event.lasting == :span }
      %i[switch tags].each do |kind|
        lasting.select { |event| event.lasting == kind }.group_by(&:thread).each_value { |e| e.last.write.call(@chunk) }
      end
    end

    def write_threads(now, repeat)
      living(now) do |thread|
        next unless repeat || !@progress[thread.name]

        @chunk.thread(thread.slot, thread.serial, thread.tid, thread.birth_ns, flags: thread.flags, name: thread.label)
      end
    end

    def write_samples(now, repeat)
      living(now) do |thread|
        @progress[thread.name] ||= Progress.new(thread.birth_ns, nil, thread.birth_ns)
        moment = thread.moments[now]
        moment ||= @progress[thread.name].moment&.dup&.tap { |m| m.cpu_ns = m.gc_ns = m.age_ns = nil } if repeat
        sample(thread, moment, now) if moment
        finish_thread(thread) if thread.end_ns && thread.end_ns <= now
      end
    end

    def living(now)
      @story.threads.each_value { |t| yield t unless t.birth_ns > now || @progress[t.name] == :ended }
    end

    def finish_thread(thread)
      @chunk.thread_end(thread.slot, thread.serial, thread.end_ns)
      @progress[thread.name] = :ended
    end

    def sample(thread, moment, now)
      before = @progress[thread.name]
      changed = before.moment.nil? || before.moment.state != moment.state
      entered = changed ? now - (moment.age_ns || 0) : before.since_ns
      spent = spent_in_states(before, moment, entered, now)
      busy = (now - before.sampled_ns) - spent[:gvl_wait] - spent[:blocked]
      elapsed = us(now - before.sampled_ns) unless @sampled_slots[thread.slot] == thread.serial
      @sampled_slots[thread.slot] = thread.serial
      @chunk.sample(thread.slot, moment.state, node: node(moment.stack), cpu: moment.cpu_ns ? us(moment.cpu_ns - busy) : 0,
                                               wait: us(spent[:gvl_wait]), blocked: us(spent[:blocked]),
                                               gc: us(moment.gc_ns || spent[:gc]), elapsed: elapsed,
                                               age: moment.age_ns && us(moment.age_ns), more: moment.more)
      @samples += 1
      @progress[thread.name] = Progress.new(now, moment, entered)
    end

    # The old state lasted from the previous sample until the new one was entered.
    def spent_in_states(before, moment, entered, now)
      spent = Hash.new(0)
      spent[before.moment.state] += [entered, now].min - before.sampled_ns if before.moment && entered > before.sampled_ns
      spent[moment.state] += now - [entered, before.sampled_ns].max
      spent
    end

    def node(stack)
      stack.inject(0) do |parent, (code, line)|
        @chunk.node(parent, code.id, line ? where(code, line) : 0)
      end
    end

    def where(code, line)
      index = code.options.fetch(:lines).key(line) or raise ArgumentError, "#{code.name} has no line #{line}"
      (index << 1) | 1
    end

    def us(nanoseconds) = nanoseconds / 1000

    def end_chunk = @file.chunk(@chunk.seq, @first_ns, @chunk.seal.blocks)

    def write_symbols
      symbols = SymbolRecords.new(block_bytes: @story.block_bytes)
      @story.codes.each_value { |code| symbols.code(code.id, code.name, **code.options) if code.name }
      @file.symbol_area(1, symbols.seal.blocks)
    end

    def write_state(ticks)
      options = @story.page_options
      alive = @story.threads.each_value.count { |t| t.end_ns.nil? || t.end_ns > ticks.last }
      counters = { ticks: ticks.size, sample_records: @samples, thread_samples: @samples, chunks: @chunks,
                   last_tick_ns: ticks.last, effective_interval_ns: @story.interval_ns, codes: @story.codes.size,
                   threads_live: alive, threads_seen: @story.threads.size }.merge(options[:counters] || {})
      @file.state_page(:a, seq: 1, state: @file.identity[:state], at_ns: ticks.last, counters: counters,
                           reason: options[:reason] || "")
    end
  end
end
