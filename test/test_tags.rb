# frozen_string_literal: true

require "test_helper"
require "support/recording_helper"

# Sdb.tag: restored however the block is left (C28), and following fibers, not threads (C24).
class TestTags < Minitest::Test
  include RecordingHelper

  def test_tags_nest_and_are_restored
    record do
      Sdb.tag(a: 1) do
        Sdb.tag(b: 2, a: 3) { assert_equal({ a: 3, b: 2 }, Sdb.tags) }
        assert_equal({ a: 1 }, Sdb.tags)
        Sdb.span("x", c: 4) do
          assert_equal({ a: 1, c: 4 }, Sdb.tags)
          Sdb.tag(d: 5) { assert_equal({ a: 1, c: 4, d: 5 }, Sdb.tags) }
        end
        assert_equal({ a: 1 }, Sdb.tags)
      end
      assert_equal({}, Sdb.tags)
      assert_predicate Sdb.tags, :frozen?
    end
  end

  def test_tags_are_restored_on_raise_throw_break_and_return
    record do
      Sdb.tag(outer: 1) do
        assert_raises(RuntimeError) { Sdb.tag(a: 1) { raise "x" } }
        assert_equal({ outer: 1 }, Sdb.tags)
        catch(:out) { Sdb.tag(a: 1) { Sdb.span("s", b: 1) { throw :out } } }
        assert_equal({ outer: 1 }, Sdb.tags)
        [1].each { Sdb.tag(a: 1) { break } }
        assert_equal({ outer: 1 }, Sdb.tags)
        leave
        assert_equal({ outer: 1 }, Sdb.tags)
        Thread.handle_interrupt(RuntimeError => :never) do
          Thread.current.raise("later")
          assert_raises(RuntimeError) { Sdb.tag(a: 1) { Thread.handle_interrupt(RuntimeError => :immediate) { sleep 1 } } }
        end
        assert_equal({ outer: 1 }, Sdb.tags)
      end
    end
  end

  def leave
    Sdb.tag(a: 1) { return }
  end

  def test_samples_have_the_tags_of_their_time
    profile = record do
      Sdb.tag(part: "one") { burn(0.04) }
      burn(0.03)
      Sdb.tag(part: "two") do
        Sdb.tag(part: "three") { burn(0.05); raise "x" }
      rescue RuntimeError
        burn(0.02)
      end
    end
    { "one" => 40, "two" => 20, "three" => 50 }.each do |part, ms|
      assert_in_delta ms, profile.functions(metric: :cpu, tag: "part=#{part}").total_ns / 1e6, 4, part
    end
  end

  # C43
  def test_a_forked_child_has_the_tags_in_effect_from_its_first_moment_on
    start(tags: { colour: "red" }, service: "shop")
    child = Sdb.tag(customer: 7) { in_child { burn(0.05) || Sdb.stop } }
    grandchild = Sdb.tag(customer: 8) { in_child { in_child { burn(0.05) || Sdb.stop } } }
    after = in_child { burn(0.05) || Sdb.stop }
    { child => "customer=7", grandchild => "customer=8", after => nil }.each do |ring, tag|
      profile = Sdb.open(ring)
      all = profile.functions.total_ns
      assert_operator all, :>, 45_000_000
      assert_in_delta all, profile.functions(tag: "colour=red").total_ns, 1e6
      assert_equal "shop", Sdb::Ring.read(ring).text["service"]
      assert_in_delta tag ? all : 0, profile.functions(tag: tag || "customer=8").total_ns, 5e6, tag
    end
  end

  def alpha_work(seconds) = spin(seconds)
  def beta_work(seconds) = spin(seconds)

  def spin(seconds)
    finish = now + seconds
    nil while now < finish
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # However late the scanner looks: what it did not see for a value it does not show for it.
  def test_tags_that_change_every_few_ms_in_two_threads_have_only_their_own_methods
    profile = record do
      finish = now + 1.5
      threads = Array.new(2) do |n|
        Thread.new do
          random = Random.new(n)
          while now < finish
            Sdb.tag(part: "alpha") { alpha_work(0.001 + (random.rand * 0.002)) }
            Sdb.tag(part: "beta") { beta_work(0.001 + (random.rand * 0.002)) }
          end
        end
      end
      threads.each(&:join)
    end
    { "alpha" => "beta_work", "beta" => "alpha_work" }.each do |part, other|
      of_value = profile.functions(tag: "part=#{part}")
      wrong = of_value.functions.find { |f| f.name.end_with?(other) }&.total_ns.to_i
      assert_operator wrong, :<, of_value.total_ns / 10_000, "#{part}: a change is known to a us" # was 2 %
    end
  end

  def test_tags_are_of_their_thread
    profile = record do
      Sdb.tag(who: "main") do
        other = Thread.new do
          assert_equal({}, Sdb.tags)
          Sdb.tag(who: "other") { burn(0.04) }
        end
        other.join
        burn(0.03)
      end
    end
    assert_in_delta 40, profile.functions(metric: :cpu, tag: "who=other").total_ns / 1e6, 4
    assert_in_delta 30, profile.functions(metric: :cpu, tag: "who=main").total_ns / 1e6, 4
  end

  def test_a_thousand_fibers_keep_their_own_tags
    wrong = []
    profile = record do
      fibers = Array.new(1000) do |n|
        Fiber.new do
          Sdb.tag(fiber: n) do
            3.times do
              Fiber.yield
              wrong << [n, Sdb.tags] unless Sdb.tags == { fiber: n }
            end
            Sdb.span("in fiber", id: "f-#{n}") do
              Fiber.yield
              wrong << [n, Sdb.current_span&.id] unless Sdb.current_span.id == "f-#{n}"
            end
          end
          wrong << [n, Sdb.tags] unless Sdb.tags.empty?
        end
      end
      order = Random.new(7)
      5.times do
        fibers.shuffle(random: order).each_slice(50) do |slice|
          slice.each { |fiber| fiber.resume if fiber.alive? }
          sleep 0.002 # what is told in one tick must fit into the queue
        end
      end
      wrong << [:root, Sdb.tags] unless Sdb.tags.empty?
    end
    assert_empty wrong
    assert_equal 1000, spans_of(profile).size
    assert_empty(spans_of(profile).select { |span| span.open || span.parent != 0 })
  end

  def test_cpu_time_goes_to_the_fiber_that_used_it
    profile = record do
      fibers = [30, 60].map do |ms|
        Fiber.new do
          Sdb.span("fiber #{ms}", id: "f-#{ms}") do
            3.times do
              burn(ms / 3000.0)
              Fiber.yield
            end
          end
        end
      end
      4.times { fibers.each { |fiber| fiber.resume } }
    end
    [30, 60].each do |ms|
      span = spans_by_name(profile).fetch("fiber #{ms}")
      assert_in_delta ms, span.cpu_ns / 1e6, 3, "exact, fiber #{ms}"
      assert_in_delta ms, profile.functions(metric: :cpu, request: "f-#{ms}").total_ns / 1e6, 6, "samples, fiber #{ms}"
      assert_operator span.wall_ns, :>, 80_000_000
      next if RUBY_VERSION < "3.2"

      assert_equal span.wall_ns, span.running_ns + span.gvl_wait_ns + span.blocked_ns + span.gc_ns
      assert_operator span.blocked_ns, :>, (90 - ms - 10) * 1_000_000 # while the other ran
    end
  end

  def test_an_enumerator_works_for_the_span_that_asks_it
    profile = record do
      Fiber.new { Sdb.span("elsewhere") { nil } }.resume # from here on switches are followed
      Sdb.span("request", id: "r-1", customer: 1) do
        enumerator = Enumerator.new { |y| loop { burn(0.02); y << Sdb.tags } }
        3.times { assert_equal({ customer: 1 }, enumerator.next) }
      end
      Sdb.tag(after: 1) { burn(0.02) }
    end
    assert_in_delta 60, spans_by_name(profile).fetch("request").cpu_ns / 1e6, 4
    assert_in_delta 60, profile.functions(metric: :cpu, request: "r-1").total_ns / 1e6, 6
  end

  def test_a_fiber_that_outlives_what_it_inherited_has_no_parent
    profile = record do
      fiber = nil
      Fiber.new do
        Sdb.span("first") do
          fiber = Fiber.new do
            Sdb.span("inside") { nil }
            Fiber.yield
            Sdb.span("outside") { nil }
          end
          fiber.resume
        end
        fiber.resume
      end.resume
    end
    assert_equal({ "first" => nil, "inside" => "first", "outside" => nil }, parents(profile))
  end

  def test_spans_of_collected_fibers_end
    profile = record do
      200.times { |n| Fiber.new { Sdb.span("lost #{n}") { Fiber.yield } }.resume }
      sleep 0.02
      2.times { GC.start }
      deep_call(50)
      GC.start
      sleep 0.02
    end
    open = spans_of(profile).count(&:open)
    assert_equal 200, spans_of(profile).size
    assert_operator open, :<, 20, "the last few may still be found on the stack"
  end

  def deep_call(depth) = depth.zero? ? nil : deep_call(depth - 1)

  def test_a_recording_may_begin_inside_a_fiber
    fiber = Fiber.new do
      start
      Sdb.span("inside", id: "i-1") do
        burn(0.02)
        Fiber.yield
      end
    end
    fiber.resume
    Sdb.span("outside", id: "o-1") { burn(0.03) }
    fiber.resume
    GC.start
    profile = Sdb.open(Sdb.stop)
    assert_equal({ "inside" => nil, "outside" => nil }, parents(profile))
    { "i-1" => 20, "o-1" => 30 }.each do |id, ms|
      assert_in_delta ms, spans_of(profile, request: id).first.cpu_ns / 1e6, 4, id
      names = profile.functions(metric: :cpu, request: id).functions.map(&:name)
      assert_includes names, "RecordingHelper#burn", id
    end
  end

  def test_fibers_that_raise_on_resume_do_not_confuse
    record do
      fiber = Fiber.new { Sdb.tag(f: 1) { Fiber.yield } }
      fiber.resume
      assert_raises(ArgumentError) { fiber.raise(ArgumentError) }
      assert_equal({}, Sdb.tags)
      Sdb.tag(main: 1) do
        other = Fiber.new { Sdb.tag(g: 1) { raise "x" } }
        assert_raises(RuntimeError) { other.resume }
        assert_equal({ main: 1 }, Sdb.tags)
      end
    end
  end
end
