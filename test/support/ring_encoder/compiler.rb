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
      pending = @story.events.sort_by.with_index { |event, n| [event[0], n] }
      rolls = @story.rolls.sort
      previous = nil
      ticks.each do |now|
        roll = previous.nil? || (rolls.first && rolls.first <= now)
        rolls.shift if roll && previous
        roll ? begin_chunk(now, previous) : write_tick(now, previous)
        pending.shift[1].call(@chunk) while pending.first && pending.first[0] <= now
        write_threads(now, roll && !previous.nil?)
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

    def begin_chunk(now, previous)
      end_chunk if @chunk
      @chunk = ChunkRecords.new(@chunks, block_bytes: @story.block_bytes)
      @first_ns = now
      @chunks += 1
      @chunk.interval(@story.interval_ns / 1000)
      @chunk.clock(now, @file.identity[:start_realtime_ns] + now)
      write_silence(now, previous)
      write_first_tick(now, previous)
    end

    def write_first_tick(_now, _previous)
      @chunk.tick(@story.interval_ns / 1000)
    end

    def write_tick(now, previous)
      write_silence(now, previous)
      @chunk.tick((now - previous) / 1000)
    end

    def write_silence(now, previous)
      from, to, reason = @story.silences.find { |f, t, _| t == now && f == previous }
      return unless from

      reason ? @chunk.gap((to - from) / 1000, reason) : @chunk.park
    end

    def write_threads(now, repeat)
      @story.threads.each_value do |thread|
        next if thread.birth_ns > now
        next if thread.end_ns && @progress[thread.name] == :ended

        progress = @progress[thread.name]
        if progress.nil? || repeat
          @chunk.thread(thread.slot, thread.serial, thread.tid, thread.birth_ns, flags: thread.flags, name: thread.label)
        end
        moment = thread.moments[now]
        moment ||= progress.moment.dup.tap { |m| m.cpu_ns = m.gc_ns = m.age_ns = nil } if repeat && progress
        sample(thread, moment, now) if moment
        finish_thread(thread) if thread.end_ns && thread.end_ns <= now
      end
    end

    def finish_thread(thread)
      @chunk.thread_end(thread.slot, thread.serial, thread.end_ns)
      @progress[thread.name] = :ended
    end

    def sample(thread, moment, now)
      before = @progress[thread.name] || Progress.new(thread.birth_ns, nil, thread.birth_ns)
      changed = before.moment.nil? || before.moment.state != moment.state
      entered = changed ? now - (moment.age_ns || 0) : before.since_ns
      spent = spent_in_states(before, moment, entered, now)
      busy = (now - before.sampled_ns) - spent[:gvl_wait] - spent[:blocked]
      cpu = moment.cpu_ns ? moment.cpu_ns - busy : 0
      @chunk.sample(thread.slot, moment.state, node: node(moment.stack), cpu: us(cpu), wait: us(spent[:gvl_wait]),
                                               blocked: us(spent[:blocked]), gc: us(moment.gc_ns || spent[:gc]),
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
