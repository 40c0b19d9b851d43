# frozen_string_literal: true

require "test_helper"
require "sdb/open"
require "support/cli_helper"

# C45: each command answers, as text, as JSON and as a page, whatever the shape of the log.
class TestC45DeepWideEmptyHuge < Minitest::Test
  include CLIHelper

  DEPTHS = [150, 5000, 16_000].freeze
  COMMANDS = [
    %w[functions], %w[tree], %w[tree --min 0], %w[tree --lines], %w[threads], %w[slow], %w[request r], %w[request r --runs], %w[lines a.rb],
    %w[callers A#a], %w[stacks], %w[status], %w[ls], %w[top --count 1], %w[oom show]
  ].freeze
  PAGES = [%w[flamegraph], %w[request r], %w[export collapsed]].freeze

  def setup
    super
    @dir = Dir.mktmpdir("sdb-c45")
  end

  def teardown
    FileUtils.rm_rf(@dir)
    super
  end

  def ring(name, **options, &story)
    path = File.join(@dir, "#{name}.sdb")
    RingEncoder.write(path, service: "shop", **options) do
      code :a, "A#a", path: "/app/a.rb", line: 1
      code :b, "B#b", path: "/app/b.rb", line: 1
      instance_eval(&story) if story
    end
  end

  def deep(frames)
    ring("deep#{frames}") do
      thread :m, tid: 1, main: true
      at 0, m: running((["a:2 b:2"] * (frames / 2)).join(" "))
      at 10, m: running("#{(["a:2 b:2"] * ((frames / 2) - 1)).join(" ")} a:3")
      span 0..nil, :m, id: "r", name: "X#y"
      finish 20
    end
  end

  def wide(functions)
    ring("wide", area_bytes: 1 << 20) do
      thread :m, tid: 1, main: true
      functions.times do |n|
        code :"f#{n}", "F#f#{n}", path: "/app/f#{n}.rb", line: 1
        at n, m: running("a:2 f#{n}")
      end
      span 0..nil, :m, id: "r", name: "X#y"
      finish functions
    end
  end

  def test_deep_stacks
    DEPTHS.each do |frames|
      path = deep(frames)
      each_answer(path) { |answer, words| assert_equal 0, answer.status, "#{frames} frames: sdb #{words.join(" ")}: #{answer.err}" }
      node = JSON.parse(sdb!("tree", "--json", path).out, max_nesting: false)["roots"].first
      depth = 1
      depth += 1 while (node = node["children"].first)
      assert_equal frames, depth
    end
  end

  def test_a_tree_that_is_deeper_than_rubys_stack_is_a_hash_like_any_other
    tree = Sdb.open(deep(16_000)).tree
    assert_equal 1, tree.to_h[:schema]
    assert_equal %w[A#a B#b], tree.to_h[:roots].first.then { |root| [root[:name], root[:children].first[:name]] }
  end

  def test_depth_and_min_cut_the_document_too
    path = deep(150)
    assert_equal [[]], sdb!("tree", "--depth", "2", "--json", path).json["roots"].map { |root| root["children"].first["children"] }
    assert_empty sdb!("tree", "--min", "100", "--json", wide(50)).json["roots"].first["children"]
  end

  def test_wide_trees
    path = wide(2000)
    each_answer(path) { |answer, words| assert_equal 0, answer.status, "sdb #{words.join(" ")}: #{answer.err}" }
    assert_equal 2000, sdb!("tree", "--json", path).json["roots"].first["children"].size
  end

  # Nothing to answer is an answer, or one line why not.
  def test_empty_logs
    [ring("nothing"), ring("idle") { thread :m, tid: 1, main: true }].each do |path|
      each_answer(path) do |answer, words|
        assert_includes [0, 1], answer.status, words.join(" ")
        assert_equal 1, answer.err.lines.size, "sdb #{words.join(" ")}: #{answer.err}" if answer.status == 1
      end
    end
  end

  def test_a_log_of_many_spans_threads_and_changes
    path = ring("huge", chunks: 8) do
      40.times do |n|
        thread :"t#{n}", tid: n + 1, main: n.zero?
        500.times { |i| at (i * 5) + 1, "t#{n}": i.even? ? running("a:2 b:#{(i % 90) + 1}") : blocked("a:3") }
        100.times { |i| span (i * 20)..((i * 20) + 15), :"t#{n}", id: "r#{n}-#{i}", name: "X#y" }
      end
      span 0..nil, :t0, id: "r", name: "X#z"
      new_chunk 700
      new_chunk 1400
      finish 2500
    end
    each_answer(path) { |answer, words| assert_equal 0, answer.status, "sdb #{words.join(" ")}: #{answer.err}" }
  end

  private

  def each_answer(path)
    COMMANDS.each do |words|
      yield sdb(*words, path), words
      yield sdb(*words, "--json", path).tap { |answer| JSON.parse(answer.out, max_nesting: false) if answer.status.zero? }, [*words, "--json"]
    end
    PAGES.each { |words| yield sdb(*words, "-o", File.join(@dir, "page.html"), path), [*words, "-o"] }
  end
end
