# frozen_string_literal: true

require "open3"
require "support/ring_encoder"

# Small logs that are right in every byte and made to take long: each has one thing in it whose product with another is
# millions of times the file.
module HostileRings
  CHUNK = 700 << 10 # what a chunk may hold at most, with some room
  DEEP = 16_000

  module_function

  # { name => builder }: writes the file and returns its path.
  def all = %i[deep_samples deep_threads deep_comb many_waits many_holders far_lines nested_spans many_requests many_events empty_chunks].to_h { |name| [name, method(name)] }

  # The process of its own is asked what it took.
  MEASURED = <<~RUBY
    require "sdb/cli"
    status = Sdb::CLI.main(ARGV)
    cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    $stderr.puts "", "measured \#{cpu} \#{File.read("/proc/self/status")[/VmHWM:\\s+(\\d+)/, 1]} \#{status}"
  RUBY

  # What `sdb WORDS PATH` takes: [seconds of CPU, KiB at most, exit status, standard error]
  def measure(words, path)
    _, err, = Open3.capture3({ "SDB" => "0", "RUBYOPT" => nil }, RbConfig.ruby, "-Ilib", "-e", MEASURED, *words, path,
                             chdir: File.expand_path("../..", __dir__))
    cpu, kib, status = err[/^measured (.*)/, 1].to_s.split
    raise "sdb #{words.join(" ")}: #{err}" if status.nil?

    [cpu.to_f, kib.to_i, status.to_i, err]
  end

  def log(path, chunks: 1, **options)
    file = RingEncoder::File.new(chunk_count: [chunks, 2].max, text: { "service" => "shop" }, **options)
    symbols = RingEncoder::SymbolRecords.new
    symbols.code(1, "A#a", path: "/app/a.rb", first_line: 1, instructions: 200_000, lines: { 0 => 2 })
    symbols.code(2, "B#b", path: "/app/b.rb", first_line: 1, instructions: 200_000, lines: { 0 => 2 })
    yield file, symbols
    file.symbol_area(1, symbols.seal.blocks)
    file.write(path)
  end

  # One chunk of the log, filled by the block up to `bytes`.
  def chunk(file, seq = 0, first_ns: 0)
    records = RingEncoder::ChunkRecords.new(seq, block_bytes: 60_000)
    records.interval(1000)
    records.clock(first_ns, 1_764_460_800_000_000_000 + first_ns)
    yield records
    file.chunk(seq, first_ns, records.seal.blocks)
  end

  # Numbers of the nodes of a stack of so many frames, each frame on a line of its own, so that no two nodes are equal.
  def spine(records, frames)
    (1..frames).inject([0]) { |nodes, i| nodes << records.node(nodes.last, 1 + (i % 2), (i << 1) | 1) }.drop(1)
  end

  # Each sample on another stack, all of them deep.
  def deep_samples(path)
    log(path) do |file, _|
      chunk(file) do |r|
        r.thread 0, 1, 1, 0, flags: %i[main], name: "main"
        r.span_begin 1, 1, 0, kind: "request", name: "X#y", request_id: "r"
        nodes = spine(r, DEEP).last(DEEP / 2)
        r.sample 0, :running, node: nodes.first, elapsed: 0
        i = 0
        while r.bytes + r.blocks.size < CHUNK && i < 60_000
          i += 1
          r.tick 1000
          r.sample 0, i.even? ? :running : :blocked, node: nodes[(i * 7) % nodes.size], blocked: i.even? ? 0 : 1000
        end
      end
    end
  end

  # Thousands of threads, each on a deep stack.
  def deep_threads(path)
    log(path) do |file, _|
      chunk(file) do |r|
        nodes = spine(r, DEEP).last(DEEP / 2)
        15_000.times do |slot|
          r.thread slot, slot + 1, slot + 1, 0
          r.sample slot, :blocked, node: nodes[slot % nodes.size], elapsed: 0
        end
        r.tick 1000
      end
    end
  end

  # A deep stack off which a branch goes at each level: a tree that is wide and deep.
  def deep_comb(path)
    log(path) do |file, _|
      chunk(file) do |r|
        r.thread 0, 1, 1, 0, flags: %i[main]
        nodes = spine(r, DEEP)
        leaves = nodes.map { |node| r.node(node, 2, 0) }
        r.sample 0, :running, node: nodes.last, elapsed: 0
        leaves.each do |leaf|
          r.tick 1000
          r.sample 0, :running, node: leaf
        end
      end
    end
  end

  # All threads wait, again and again, while another runs.
  def many_waits(path)
    log(path) do |file, _|
      chunk(file) do |r|
        threads = 400
        threads.times do |slot|
          r.thread slot, slot + 1, slot + 1, 0
          r.span_begin slot + 1, slot + 1, 0, kind: "request", name: "X#y", request_id: slot.zero? ? "r" : "r#{slot}"
        end
        node = r.node(0, 1, 1)
        threads.times { |slot| r.sample slot, :gvl_wait, node: node, elapsed: 0 }
        i = 0
        while r.bytes + (r.blocks.size * 60_000) < CHUNK
          i += 1
          r.tick 1000
          threads.times { |slot| r.sample slot, (slot + i).even? ? :running : :gvl_wait, node: node, wait: (slot + i).even? ? 0 : 1000 }
        end
      end
    end
  end

  # A request that waits again and again while thousands run at once, as no GVL lets them.
  def many_holders(path)
    log(path) do |file, _|
      chunk(file) do |r|
        node = r.node(0, 1, 1)
        8000.times do |slot|
          r.thread slot, slot + 1, slot + 1, 0
          r.sample slot, :running, node: node, elapsed: 0
        end
        r.span_begin 1, 1, 0, kind: "request", name: "X#y", request_id: "r"
        40_000.times do |i|
          r.tick 1000
          r.sample 0, i.even? ? :gvl_wait : :running, node: node, wait: i.even? ? 1000 : 0
        end
      end
    end
  end

  # Code on lines up to four billion.
  def far_lines(path)
    log(path) do |file, symbols|
      lines = (0...2000).to_h { |i| [i, 1 + (i * 2_000_000)] }
      symbols.code(3, "C#c", path: "/app/c.rb", first_line: 1, instructions: 200_000, lines: lines)
      symbols.code(4, "D#d", path: "/app/c.rb", first_line: (1 << 24) - 2, instructions: 200_000, lines: { 0 => (1 << 24) - 1 })
      chunk(file) do |r|
        r.thread 0, 1, 1, 0, flags: %i[main]
        r.sample 0, :running, node: r.node(0, 4, 1), elapsed: 0
        2000.times do |i|
          r.tick 1000
          r.sample 0, :running, node: r.node(0, 3, (i << 1) | 1)
        end
      end
    end
  end

  # Spans in spans in spans.
  def nested_spans(path)
    log(path) do |file, _|
      chunk(file) do |r|
        r.thread 0, 1, 1, 0, flags: %i[main]
        r.sample 0, :running, node: r.node(0, 1, 1), elapsed: 0
        n = 0
        while r.bytes + (r.blocks.size * 60_000) < CHUNK
          n += 1
          r.span_begin 1, n, n * 1000, kind: "x", name: "n", parent: n - 1, request_id: n == 1 ? "r" : ""
        end
        r.tick 1000
        r.sample 0, :gvl_wait, wait: 1000
      end
    end
  end

  # Requests by the ten thousand, each waiting for deep stacks.
  def many_requests(path)
    log(path) do |file, _|
      chunk(file) do |r|
        nodes = spine(r, DEEP)
        2.times { |slot| r.thread slot, slot + 1, slot + 1, 0 }
        r.sample 0, :gvl_wait, node: nodes.first, elapsed: 0
        r.sample 1, :running, node: nodes.last, elapsed: 0
        i = 0
        while r.bytes + (r.blocks.size * 60_000) < CHUNK
          i += 1
          r.span_begin 1, i, i * 1_000_000, kind: "request", name: "X#y#{i % 50}", request_id: i == 1 ? "r" : "r#{i}"
          r.tick 1000
          r.sample 0, :gvl_wait, node: nodes[i % 3], wait: 1000
          r.sample 1, :running, node: nodes[DEEP - 1 - (i % 5000)]
          r.span_end i, (i * 1_000_000) + 900_000, name: "X#y#{i % 50}"
        end
      end
    end
  end

  # Marks, memory, counters and clocks, as short as they can be.
  def many_events(path)
    log(path) do |file, _|
      chunk(file) do |r|
        r.thread 0, 1, 1, 0, flags: %i[main]
        r.sample 0, :running, node: r.node(0, 1, 1), elapsed: 0
        n = 0
        while r.bytes + (r.blocks.size * 60_000) < CHUNK
          n += 1
          r.tick 1000
          r.clock n * 1_000_000, 1_764_460_800_000_000_000 + (n * 1_000_000)
          r.mark n, ""
          r.memory n, 1
          r.counters [1]
          r.gc 1, n, 1
          r.pre_oom n, 1, {}
        end
      end
    end
  end

  # A file that is a gigabyte to everybody but the disk.
  def empty_chunks(path)
    log(path, chunks: 1000) do |file, _|
      900.times do |seq|
        chunk(file, seq, first_ns: seq * 1_000_000) do |r|
          r.thread 0, 1, 1, 0, flags: %i[main]
          r.sample 0, :running, node: r.node(0, 1, 1), elapsed: 0
        end
      end
    end
  end
end
