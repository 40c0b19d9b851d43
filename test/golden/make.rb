# frozen_string_literal: true

# Makes the golden files: gzipped logs in good/ and bad/, each with the answers that any later reader must
# give in a .json beside it. Run it when a file is added; a file that exists is never made again, for the point
# of it is that old logs stay readable. `ruby test/golden/make.rb`

require "json"
require "zlib"
require_relative "../support/ring_encoder"
require_relative "golden"

module Golden
  SHOP = proc do
    code :main, "<main>", path: "/app/main.rb", line: 1
    code :index, "UsersController#index", path: "/app/users.rb", line: 10
    code :big, "ReportsController#big", path: "/app/reports.rb", line: 20
    code :sleep, "Kernel#sleep"
    code :late, "not told", path: "/app/late.rb", line: 1, named: false
    thread :a, tid: 11, name: "puma 1", main: true
    thread :b, tid: 12, name: "püma 2"
    thread :c, tid: 13, born: 30.5, dies: 61.25
    at 0,  a: running("main:2 index:12"), b: blocked("main:2 sleep")
    at 20, a: gvl_wait("main:2 index:12", age: 0.5), b: running("main:2 big:25", age: 0.5, gc: 0.1)
    at 32, c: running("late big:22", age: 0.1)
    at 50, a: running("main:2 index:13", age: 0.25), b: blocked("main:2 sleep", age: 0.25), c: gc("late big:22")
    at 80, a: blocked("main:2 sleep", age: 0.75, cpu: 25)
    gap 85..89
    park 92..140
    span 10..70, :a, id: "r-1", name: "UsersController#index", status: 200, cpu: 30, gvl_wait: 30, allocations: 7, tags: { customer: "7" }
    span 15..55, :b, id: "r-2", name: "ReportsController#big", status: 500, cpu: 30, blocked: 10
    span 75..nil, :a, id: "r-3", name: "UsersController#index"
    tags 12, :b, tenant: "x"
    mark 33, "deploy 7"
    gc_run 52..53, :c, count: 3, live_slots: 1000
    memory 40, 1 << 27, usage: 1 << 28, limit: 1 << 29
    pre_oom 60, 80, rss: 1 << 28
    new_chunk 25
    new_chunk 50
    finish 150
  end

  OPTIONS = { chunks: 4, area_bytes: 8192, service: "shop", app_root: "/app", argv: %w[puma -t 5], tags: { "region" => "eu" } }.freeze

  module_function

  def build(**options, &story) = RingEncoder.build(**OPTIONS, **options, &story || SHOP)

  def bytes_of(file)
    path = File.join(Dir.tmpdir, "golden-#{Process.pid}.sdb")
    File.binread(file.write(path))
  ensure
    File.delete(path) if File.exist?(path)
  end

  def files
    shop = bytes_of(build)
    chunk = build.chunk_off(1)
    {
      "good/shop" => shop,
      "good/closed" => bytes_of(build(state: :closed, flags: %i[states_exact yjit]) { instance_eval(&SHOP); status(state: :closed, reason: "stopped by Sdb.stop") }),
      "good/inferred" => bytes_of(build(flags: [], ruby: "3.1.2")),
      "good/later_minor" => bytes_of(build(minor: 7) do
        instance_eval(&SHOP)
        record(5) { |r| r.sized(61, "a record of later") }
      end),
      "bad/no_ring" => "not a ring, just text\n" * 1000,
      "bad/later_major" => bytes_of(build(major: 2)),
      "bad/identity" => shop.dup.tap { |b| b.setbyte(90, b.getbyte(90) ^ 1) },
      "bad/truncated" => shop[0, build.chunk_off(1) + 300],
      "bad/torn_chunk" => shop.dup.tap { |b| b.setbyte(chunk + 90, b.getbyte(chunk + 90) ^ 1) },
      "bad/lost_chunk" => shop.dup.tap { |b| b[chunk, 64] = "\0" * 64 },
      "bad/damaged_record" => bytes_of(build do
        instance_eval(&SHOP)
        record(30) { |r| r.seal.raw("\0").seal }
      end)
    }
  end

  def make
    files.each do |name, bytes|
      path = File.join(DIR, "#{name}.sdb.gz")
      next if File.exist?(path)

      Zlib::GzipWriter.open(path, 9) do |gz|
        gz.mtime = 1
        gz.write(bytes)
      end
      puts "made #{path}"
    end
    logs.each do |path|
      answers = path.sub(/\.sdb\.gz\z/, ".json")
      next if File.exist?(answers)

      File.write(answers, "#{JSON.pretty_generate(ask(path))}\n")
      puts "made #{answers}: check it before it is committed"
    end
  end
end

Golden.make if $PROGRAM_NAME == __FILE__
