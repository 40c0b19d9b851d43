# frozen_string_literal: true

require "test_helper"
require "support/app_server"

# Sidekiq with 25 threads and a real Redis (C15).
class TestSidekiq < Minitest::Test
  include AppServer

  def setup
    super
    skip "redis-server is not installed" unless system("redis-server", "--version", out: File::NULL, err: File::NULL)
    @redis_port = free_port
    start("redis-server", "--port", @redis_port.to_s, "--bind", "127.0.0.1", "--dir", @work, "--save", "", port: @redis_port, way: nil)
    @env = { "REDIS_URL" => "redis://127.0.0.1:#{@redis_port}/0" }
  end

  def test_a_jobs_profile_holds_only_that_job
    sidekiq
    ids = push(<<~RUBY)
      (0...200).map { |n| TaggedJob.perform_async(n) } << FailingJob.perform_async
    RUBY
    wait_until("the jobs are done") { spans.size >= 201 && spans.none?(&:open) }
    stop(@sidekiq)

    merged = profile
    found = spans(merged).select { |span| span.kind == "job" }
    assert_equal [[], []], [ids - found.map(&:id), found.map(&:id) - ids]
    assert_equal({ "TaggedJob" => 200, "FailingJob" => 1 }, found.map(&:name).tally)
    assert_equal({ "ended" => 200, "raised" => 1 }, found.map(&:status).tally)
    assert_equal ["default"], found.map { |span| span.tags["queue"] }.uniq
    assert_equal [0], found.map(&:parent).uniq
    assert_operator found.map(&:tid).uniq.size, :>, 5, "jobs ran on few threads"
    ids.first(60).each_with_index { |id, number| assert_only_its_own(merged, id, number) }
    assert_only_even(merged)
  end

  # The time of span and of tag lies in the job's own method and in no other job's.
  def assert_only_its_own(merged, id, number)
    { request: id, tag: "job=#{number}" }.each do |filter, value|
      times = merged.functions(filter => value).functions.select { |f| f.name.start_with?("Workers.work_") }
      own, others = times.partition { |f| f.name == "Workers.work_#{number % 25}" }
      assert_equal 1, own.size, "#{filter} of job #{number}"
      # Inferred states leave open when in the last interval a thread went on: some us of 1 job in 100.
      others.select! { |f| f.total_ns > 100_000 } if RUBY_VERSION < "3.2"
      assert_empty others, "#{filter} of job #{number}"
    end
    cpu = merged.functions(metric: :cpu, request: id).total_ns
    assert_operator cpu, :>, 6_000_000, "job #{number} used 12 ms"
  end

  def assert_only_even(merged)
    numbers = merged.functions(tag: "kind=0").functions.map(&:name).grep(/\AWorkers\.work_/).size
    assert_operator numbers, :>=, 20
    assert_operator merged.functions(tag: "failing=true").total_ns, :<, merged.functions.total_ns
  end

  def test_the_slowest_job_is_found_by_its_id
    sidekiq
    id = push("[TaggedJob.perform_async(3)]").first
    wait_until("the job is done") { spans.any? { |span| span.id == id && !span.open } }
    stop(@sidekiq)
    job = sdb_json("request", id)
    assert_equal %w[job TaggedJob], job.values_at("kind", "name")
    assert_operator job["wall_ns"], :>=, 24_000_000
    assert_equal job["wall_ns"], job["runs"].sum { |run| run["ns"] }
  end

  def sidekiq
    @sidekiq = start(*bundle("sidekiq", "-r", "./jobs.rb", "-c", "25"), chdir: File.join(APPS, "jobs"), env: @env)
  end

  # Runs code in a client process. @return the ids
  def push(code)
    client = "require './jobs'; puts (#{code.strip})"
    out, err, status = Open3.capture3(environment(nil).merge(@env), *bundle("ruby", "-I#{ROOT}/lib", "-rsdb", "-e", client), chdir: File.join(APPS, "jobs"))
    assert_predicate status, :success?, err
    out.scan(/\b\h{24}\b/)
  end
end
