# frozen_string_literal: true

require "test_helper"
require "support/profile_helper"

# Files that are not as they should be: a clear error or a partial result, never a crash or a hang.
class TestRingDamage < Minitest::Test
  include ProfileHelper

  STORY = proc do
    thread :m, tid: 1, main: true
    at 0, m: running("main:2 work:12")
    at 15, m: running("main:2 other:22")
    at 25, m: blocked("main:2 sleep", age: 0.5)
    new_chunk 10
    new_chunk 20
    finish 30
  end
  AREA_A = 16_384

  def test_a_file_that_is_no_ring
    assert_format_error(/not.*ring/i) { File.binwrite(_1, "hello" * 5000) }
    assert_format_error(/not.*ring/i) { File.binwrite(_1, "") }
    assert_format_error(/not.*ring/i) { File.mkfifo(_1) }
    assert_raises(Errno::ENOENT) { Sdb::Ring.read(File.join(@dir, "none.sdb")) }
  end

  def test_a_later_major_version_is_refused_and_a_later_minor_read
    assert_format_error(/newer|version/) { |path| ring(File.basename(path), major: 2, &STORY) }
    assert_equal 30 * MS, profile(minor: 9, &STORY).functions.total_ns
  end

  def test_an_identity_with_a_wrong_bit_is_corrupt
    assert_format_error(/corrupt|wrong|damaged/i) { |path| patch(ring(File.basename(path), &STORY), 110, "\xff") }
  end

  def test_layouts_that_do_not_fit_are_corrupt
    [[64, 7], [64, 1 << 40], [72, 0], [72, 1 << 40], [56, 1 << 63], [32, (1 << 64) - 1], [48, 1 << 62], [48, 1]].each do |offset, value|
      assert_format_error(/corrupt|wrong|damaged/i) do |path|
        ring(File.basename(path), &STORY)
        patch_identity(path, offset, [value].pack("Q<"))
      end
    end
  end

  def test_a_truncated_file_is_read_as_far_as_it_goes
    path = ring(&STORY)
    whole = File.size(path)
    seen = (0..whole).step(whole / 37).filter_map do |size|
      copy = File.join(@dir, "cut.sdb")
      File.binwrite(copy, File.binread(path, size) || "")
      read = Sdb::Profile.new([copy])
      read.functions
      assert_includes read.warnings.join, "truncated" if size < whole
      read.functions.total_ns
    rescue Sdb::FormatError
      nil
    end
    assert_equal seen.sort, seen, "more bytes never show less"
    assert_operator seen.size, :>, 20
    assert_equal 30 * MS, Sdb::Profile.new([path]).functions.total_ns
  end

  def test_each_flipped_byte_of_a_chunk_costs_that_chunk_at_most
    path = ring(&STORY)
    bytes = File.binread(path)
    chunk = chunk_off(1)
    used = bytes[chunk, 4096].rstrip.bytesize
    [*0...used].each_slice(7) do |slice|
      copy = bytes.dup
      slice.each { |i| copy.setbyte(chunk + i, copy.getbyte(chunk + i) ^ 0x55) }
      File.binwrite(File.join(@dir, "flip.sdb"), copy)
      p = Sdb::Profile.new([File.join(@dir, "flip.sdb")])
      thread = p.threads.threads.first
      assert_equal 30 * MS, thread.running_ns + thread.blocked_ns + thread.unknown_ns
      assert_operator self_ms(p)["Foo#work"], :>=, 9
      assert_operator self_ms(p)["Kernel#sleep"], :>=, 5
    end
  end

  def test_a_chunk_of_an_earlier_lap_is_left_out
    file = RingEncoder.build(chunks: 2) do
      instance_eval(&CODES)
      instance_eval(&STORY)
    end
    chunks = file.instance_variable_get(:@chunks)
    # the writer lost chunk 2: place 0 still has chunk 0, place 1 is two laps later
    chunks.replace(0 => chunks[0], 3 => relabel(chunks[2], 3))
    p = Sdb::Profile.new([file.write(File.join(@dir, "lap.sdb"))])
    assert_nil total_ms(p)["Foo#work"]
    assert_operator total_ms(p)["Kernel#sleep"], :>, 4
  end

  def test_symbols_come_from_the_area_of_the_higher_generation
    file = RingEncoder.build do
      instance_eval(&CODES)
      instance_eval(&STORY)
    end
    newer = RingEncoder::SymbolRecords.new
    newer.code(2, "Foo#renamed", path: "/app/foo.rb", first_line: 10, instructions: 9, lines: { 0 => 10 })
    file.symbol_area(2, newer.seal.blocks)
    p = Sdb::Profile.new([file.write(File.join(@dir, "two.sdb"))])
    assert_includes total_ms(p).keys, "Foo#renamed"
    refute_includes total_ms(p).keys, "Foo#work"
    assert_includes total_ms(p).keys, "Bar.other"
  end

  def test_a_newer_state_page_wins_and_a_torn_one_is_not_used
    file = RingEncoder.build(&STORY_WITH_CODES)
    file.state_page(:b, seq: 2, state: :closed, at_ns: 31 * MS, counters: { ticks: 77 }, reason: "stopped by hand")
    path = file.write(File.join(@dir, "state.sdb"))
    assert_equal ["stopped", "stopped by hand", 77], Sdb::Ring.read(path).then { |r| [r.state, r.reason, r.counters[:ticks]] }
    patch(path, 12_288 + 100, "\xff")
    assert_equal ["dead", nil, 31], Sdb::Ring.read(path).then { |r| [r.state, r.reason, r.counters[:ticks]] }
    patch(path, 8192 + 100, "\xff")
    assert_equal ["dead", {}], Sdb::Ring.read(path).then { |r| [r.state, r.counters] }
  end

  STORY_WITH_CODES = proc do
    instance_eval(&ProfileHelper::CODES)
    instance_eval(&STORY)
  end

  def test_records_that_make_no_sense_are_left_out_and_counted
    p = profile do
      instance_eval(&STORY)
      record(5) do |r|
        r.raw([0xc0, 9].pack("C*"))                                     # a slot without THREAD
        r.sized(16, [0xff, 0xff, 0x7f, 1, 1, 0, 0].pack("C*"))          # THREAD of slot 2097151
        r.sized(23, "\x01".b)                                           # SPAN_BEGIN cut short
        r.sized(22, "\x63abc".b)                                        # STRING 99 as the first
        r.sized(24, RingEncoder::Bytes.varints(77, 1, 0, 0, 0, 0, 0, 0, 0, 0)) # SPAN_END of no span
        r.sized(60, "of a later minor version")
        r.raw([0x90, 0, 0xfe, 0xff, 0x03].pack("C*")) # a node that is not there
      end
    end
    assert_equal 30 * MS, p.functions.total_ns
    assert_includes p.warnings.join, "6 records"
  end

  def test_damage_inside_a_good_block_ends_the_chunk_there
    [[0], [6], [15], [2, 9, 1, 0], [1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], [3, 0], [0x80]].each do |damage|
      p = profile do
        instance_eval(&STORY)
        record(5) { |r| r.seal.raw(damage.pack("C*")).seal }
      end
      assert_includes p.warnings.join, "1 chunk is damaged", damage.inspect
      assert_operator self_ms(p).fetch("Kernel#sleep"), :>=, 5, damage.inspect
      assert_equal 30 * MS, p.functions.total_ns, damage.inspect
    end
  end

  def test_a_million_fold_promise_costs_no_memory
    p = profile do
      instance_eval(&STORY)
      record(5) { |r| r.sized(26, RingEncoder::Bytes.varints(1, 5, 1 << 60)) }
      record(6) { |r| r.sized(28, RingEncoder::Bytes.varints(5, 80, 1 << 62)) }
    end
    assert_equal 30 * MS, p.functions.total_ns
    assert_includes p.warnings.join, "2 records"
  end

  def test_a_sparse_giant_is_refused_or_read_quickly
    path = ring(&STORY)
    File.truncate(path, 1 << 40)
    spent = cpu_s { assert_equal 30 * MS, Sdb::Profile.new([path]).functions.total_ns }
    patch_identity(path, 24, [1 << 40].pack("Q<"))
    patch_identity(path, 72, [1 << 19].pack("Q<"))
    spent += cpu_s { Sdb::Profile.new([path]).functions }
    assert_operator spent, :<, 20, "seconds of CPU; 4 were seen"
    assert_operator peak_mib, :<, 600
  end

  def test_stacks_deeper_than_the_limit_are_cut
    p = profile do
      instance_eval(&STORY)
      record(5) do |r|
        parent = 0
        20_000.times { parent = r.node(parent, 2, 0) }
        r.sample(0, :running, node: parent)
      end
    end
    frames = p.each_stack.map { |_, _, f, _| f.size }.max
    assert_equal 16_384, frames
    assert_operator total_ms(p)["Foo#work"], :<=, 30
  end

  def test_a_log_that_is_written_meanwhile_is_read_over_and_over
    a = File.binread(ring("a.sdb", &STORY))
    b = File.binread(ring("b.sdb") do
      instance_eval(&STORY)
      at 3, m: running("main:4 gem:6")
    end)
    path = File.join(@dir, "live.sdb")
    File.binwrite(path, a)
    stop = false
    writer = Thread.new do
      file = File.open(path, "r+b")
      [a, b].each { |bytes| (chunk_off(0)...bytes.bytesize).step(4096) { |at| file.pwrite(bytes[at, 4096], at) } } until stop
    end
    30.times do
      thread = Sdb::Profile.new([path]).threads.threads.first
      assert_operator thread.running_ns + thread.blocked_ns + thread.unknown_ns, :<=, 30 * MS if thread
    end
  ensure
    stop = true
    writer&.join
  end

  private

  def cpu_s
    before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    yield
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - before
  end

  def assert_format_error(words)
    path = File.join(@dir, "bad#{@bad = @bad.to_i + 1}.sdb")
    yield path
    error = assert_raises(Sdb::FormatError) { Sdb::Profile.new([path]).functions }
    assert_match words, error.message
    assert_includes error.message, path
    assert_raises(Sdb::FormatError) { Sdb::Ring.read(path) }
  end

  def patch(path, offset, bytes)
    File.open(path, "r+b") { |f| f.pwrite(bytes.b, offset) }
    path
  end

  # With a good checksum again.
  def patch_identity(path, offset, bytes)
    patch(path, offset, bytes)
    head = File.binread(path, 8192)
    proven = head[0, 256 + head[248, 4].unpack1("L<")]
    proven[20, 4] = proven[252, 4] = "\0\0\0\0"
    patch(path, 252, [RingEncoder::Bytes.crc32c(proven)].pack("L<"))
  end

  def chunk_off(seq) = AREA_A + 2 * (256 << 10) + seq * (1 << 20)

  # The same payloads under another seq.
  def relabel(chunk, seq)
    first = chunk[16, 8].unpack1("Q<")
    at = 64
    blocks = []
    while at < chunk.bytesize
      length = chunk[at, 4].unpack1("L<")
      blocks << chunk[at + 8, length]
      at += 8 + length
    end
    RingEncoder.build {}.chunk(seq, first, blocks)
  end

  def peak_mib = File.read("/proc/self/status")[/VmHWM:\s+(\d+)/, 1].to_i / 1024
end
