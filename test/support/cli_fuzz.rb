# frozen_string_literal: true

require "json"
require "stringio"
require "timeout"
require "tmpdir"
require "sdb/cli"
require "support/dump_encoder"
require "support/hostile_rings"
require "support/sample_ring"

# Every command on logs in which some bytes are others, with checksums that say all is well. A run must answer, or say in one
# line why not, within its time; nothing that drives a terminal comes out.
class CLIFuzz
  COMMANDS = [
    %w[functions], %w[functions --json], %w[functions --metric gvl_wait --last 50ms], %w[tree], %w[tree --json --lines], %w[threads], %w[threads --json],
    %w[slow], %w[slow --json], %w[request slow-1], %w[request slow-1 --json], %w[request open-1 --runs], %w[request slow-1 -o PAGE],
    %w[lines users.rb], %w[lines users.rb --json], %w[callers /./], %w[callers UsersController#index --json], %w[stacks], %w[stacks --json --to 00:00:00.2],
    %w[status], %w[status --json], %w[ls], %w[ls --json], %w[top --count 1 --every 100ms], %w[top --count 1 --every 100ms --json],
    %w[export collapsed], %w[export collapsed --lines], %w[flamegraph -o PAGE], %w[oom show], %w[oom show --json], %w[oom show -o PAGE], %w[oom list --json],
    %w[functions --endpoint UsersController#index --percentile 50], %w[functions --tag customer=7], %w[tree --only-app --focus Users]
  ].freeze
  SECONDS = 10
  # What may not come out: all that Unicode calls a control character but for line ends, and marks that turn text around.
  FORBIDDEN = /[[:cntrl:]&&[^\n\t]]|[\u202a-\u202e\u2066-\u2069\u2028\u2029]/

  class Failed < StandardError
  end

  def initialize(dir)
    @dir = dir
    @sources = sources
  end

  # So many runs; yields after each. Raises Failed with how to repeat it.
  def run(count, first: 0)
    (first...(first + count)).each do |number|
      once(number)
      yield number if block_given?
    end
  end

  def once(number)
    @random = Random.new(number)
    name, bytes = @sources.to_a[@random.rand(@sources.size)]
    path = File.join(@dir, name)
    File.binwrite(path, mutant(bytes))
    words = COMMANDS[@random.rand(COMMANDS.size)].map { |word| word == "PAGE" ? File.join(@dir, "page.html") : word }
    check(number, words, path)
  end

  private

  # { file name => bytes }
  def sources
    ring = SampleRing.write(File.join(@dir, "a.sdb"))
    dump = DumpEncoder.write(File.join(@dir, "a.sdbdump"), ring: ring, facts: { "cause" => "oom", "killed_monotonic_ns" => 1_000_900_000_000 },
                                                           flags: { complete: 1 },
                                                           threads: [{ serial: 1, tid: 4242, frames: [[1, 2, 3, DumpEncoder::METHOD]] * 3 }])
    [ring, dump].to_h { |path| [File.basename(path), File.binread(path)] }
  end

  def check(number, words, path)
    out = StringIO.new
    err = StringIO.new
    status = Timeout.timeout(SECONDS, Failed) { Sdb::CLI.run([*words, path], out: out, err: err) }
    raise Failed, "status #{status.inspect}" unless [0, 1, 2].include?(status)
    raise Failed, "no word why not" if status != 0 && err.string.empty?

    [out, err].each { |io| raise Failed, "#{io.string[FORBIDDEN].inspect} came out" if io.string.dup.force_encoding("UTF-8").scrub.match?(FORBIDDEN) }
    JSON.parse(out.string, max_nesting: false) if words.include?("--json") && status.zero? && !out.string.empty?
  rescue StandardError, SystemStackError, NoMemoryError => e
    keep = File.join(Dir.tmpdir, "sdb-fuzz-#{number}#{File.extname(path)}")
    FileUtils.cp(path, keep)
    raise Failed, "run #{number}: sdb #{words.join(" ")} #{keep}: #{e.class}: #{e.message}\n  #{e.backtrace.first(5).join("\n  ")}"
  end

  # --- other bytes, right checksums ------------------------------------------------------------------------------------

  def mutant(bytes)
    bytes = bytes.dup
    base = ring_offset(bytes)
    (1 + @random.rand(4)).times do
      block = blocks(bytes, base).sample(random: @random)
      kind = @random.rand(20)
      if kind.zero? || block.nil? then spoil_identity(bytes, base)
      elsif kind == 1 then spoil_header(bytes, base)
      else spoil_block(bytes, *block)
      end
    end
    bytes
  end

  # Where the ring begins: 0, or inside of a dump.
  def ring_offset(bytes)
    return 0 unless bytes.start_with?(DumpEncoder::MAGIC)

    (0...64).filter_map { |i| bytes[64 + (24 * i), 24].unpack("LLQQ") }.find { |type, *| type == DumpEncoder::TYPES[:ring] }[2]
  end

  # [[offset of the header, seq], ...] of all blocks, in the chunks and in the symbol area
  def blocks(bytes, base)
    areas(bytes, base).flat_map do |off|
      seq = bytes[off + 8, 8].unpack1("Q<")
      found = []
      at = off + 64
      while (n = bytes[at, 4]&.unpack1("L<")) && n.between?(1, 65_536)
        found << [at, seq]
        at += 8 + n
      end
      found
    end
  end

  def areas(bytes, base)
    a, b, size, chunks, chunk_bytes, count = bytes[base + 32, 48].unpack("Q<6").values_at(0, 1, 2, 3, 4, 5)
    _ = size
    return [] if count > 100 || chunk_bytes > 1 << 20 || chunks > bytes.bytesize

    [a, b, *Array.new(count) { |i| chunks + (i * chunk_bytes) }].map { |off| base + off }
                                                                .select { |off| off + 64 < bytes.bytesize && !bytes[off, 8].unpack1("Q<").zero? }
  end

  def spoil(bytes, from, count)
    (1 + @random.rand(6)).times do
      at = from + @random.rand(count)
      bytes.setbyte(at, [0, 1, 0x7f, 0x80, 0xff, 0x1b, @random.rand(256)].sample(random: @random))
    end
  end

  def spoil_block(bytes, at, seq)
    n = bytes[at, 4].unpack1("L<")
    spoil(bytes, at + 8, n)
    bytes[at + 4, 4] = [RingEncoder::Bytes.crc32c([seq].pack("Q<"), bytes[at, 4], bytes[at + 8, n])].pack("L<")
  end

  def spoil_header(bytes, base)
    off = areas(bytes, base).sample(random: @random) or return
    spoil(bytes, off + 8, 16)
    header = bytes[off, 64]
    header[24, 4] = "\0\0\0\0"
    bytes[off + 24, 4] = [RingEncoder::Bytes.crc32c(header)].pack("L<")
  end

  def spoil_identity(bytes, base)
    n = 256 + bytes[base + 248, 4].unpack1("L<")
    return if n > 8192

    spoil(bytes, base + 24, n - 24)
    n = 256 + bytes[base + 248, 4].unpack1("L<")
    return if n > 8192

    identity = bytes[base, n]
    identity[20, 4] = "\0\0\0\0"
    identity[252, 4] = "\0\0\0\0"
    bytes[base + 252, 4] = [RingEncoder::Bytes.crc32c(identity)].pack("L<")
  end
end
