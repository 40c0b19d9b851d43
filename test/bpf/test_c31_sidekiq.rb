# frozen_string_literal: true

require "test_helper"
require "bpf/support"
require "support/app_server"
require "support/cli_helper"
require "sdb/oom/death"

# C31: Sidekiq, with a real Redis, that the OOM killer takes in the middle of a job: which job, on which line, with how
# much memory. With the daemon, and from the ring alone.
class TestC31Sidekiq < Minitest::Test
  include AppServer
  include BlackBox::Setup
  include CLIHelper

  LIMIT = 256 << 20
  JOBS = File.join(AppServer::APPS, "jobs")
  HUNGRY_LINE = File.readlines(File.join(JOBS, "jobs.rb")).index { |line| line.include?("loop { kept <<") } + 1

  def setup
    skip "redis-server is not installed" unless system("redis-server", "--version", out: File::NULL, err: File::NULL)
    super
    @redis_port = free_port
    start("redis-server", "--port", @redis_port.to_s, "--bind", "127.0.0.1", "--dir", @work, "--save", "", port: @redis_port, way: nil)
  end

  def test_the_dump_of_a_killed_sidekiq_names_the_job_its_line_and_the_memory
    pid, ids = killed_in_the_middle_of_a_job(daemon.name)
    death = Sdb::Oom::Death.read(daemon.dump_of(pid).path)
    assert_equal "oom", death.cause
    assert_names_the_jobs(death, ids)
    # the kernel's own word on it, and the last minute as the process saw it
    assert_operator death.kill[:anon_rss_bytes], :>, LIMIT / 3
    assert_equal LIMIT, death.kill[:cgroup_limit_bytes]
    text = sdb!("oom", "show", death.path).out
    [/was killed by the kernel's OOM killer/, /HungryJob/, /PatientJob/, /HungryJob#load_rows .*jobs\.rb:#{HUNGRY_LINE}$/,
     /limit 256 MiB/].each { |expected| assert_match expected, text }
  end

  def test_without_the_daemon_the_ring_tells_the_same_but_the_kills_own_facts
    pid, ids = killed_in_the_middle_of_a_job("#{@base}/none.sock")
    death = Sdb::Oom::Death.read(ring_of(pid))
    assert_names_the_jobs(death, ids)
    assert_equal 1, death.flags[:pre_oom_present]
  end

  private

  # As in production: the environment alone, 5 threads, a limit on memory. @return [pid, { class => job id }]
  def killed_in_the_middle_of_a_job(socket)
    group = cgroup(LIMIT)
    env = environment(:option, REDIS_URL: "redis://127.0.0.1:#{@redis_port}/0", SDB_OOMD: socket)
    command = ["sh", "-c", "echo $$ > #{group.procs}; exec \"$@\"", "sh", *bundle("sidekiq", "-r", "./jobs.rb", "-c", "5")]
    pid = Process.spawn(env, *command, chdir: JOBS, in: File::NULL, out: (log = "#{@work}/sidekiq.log"), err: log)
    @servers << pid
    ids = push("PatientJob", 1)
    wait_until("the patient job runs") { names_in(pid).include?("PatientJob#wait_for_it") }
    ids.update(push("HungryJob", [1]))
    status = wait_until("it is killed: #{File.read(log)}") { Process.wait2(pid, Process::WNOHANG)&.last }
    @servers.delete(pid)
    assert_equal Signal.list["KILL"], status.termsig, File.read(log)
    [pid, ids]
  end

  def push(job, argument)
    code = "require './jobs'; puts #{job}.perform_async(#{argument.inspect})"
    env = environment(nil, REDIS_URL: "redis://127.0.0.1:#{@redis_port}/0")
    out, err, status = Open3.capture3(env, *bundle("ruby", "-I#{AppServer::ROOT}/lib", "-rsdb", "-e", code), chdir: JOBS)
    assert_predicate status, :success?, err
    { job => out[/\b\h{24}\b/] }
  end

  # Not that of `bundle exec`, which became Sidekiq by exec.
  def ring_of(pid) = Dir["#{@rings}/#{pid}-*.sdb"].max_by { |path| File.mtime(path) }

  def names_in(pid)
    ring = ring_of(pid)
    ring ? Sdb.open(ring).stacks.threads.flat_map { |thread| thread.frames.map(&:name) } : []
  end

  def assert_names_the_jobs(death, ids)
    jobs = death.spans.select { |span| span.kind == "job" }
    assert_equal ids, jobs.to_h { |span| [span.name, span.id] }
    stacks = jobs.to_h { |span| [span.name, death.threads.find { |thread| thread.tid == span.tid }.frames] }
    assert_includes stacks["PatientJob"].map(&:name), "PatientJob#wait_for_it"
    hungry = stacks["HungryJob"].find { |frame| frame.name.end_with?("HungryJob#load_rows") }
    assert_equal ["jobs.rb", HUNGRY_LINE], [File.basename(hungry.path), hungry.line]
    rows = death.memory
    assert_operator rows.size, :>, 3
    assert_operator rows.map(&:cgroup_bytes).max, :>, LIMIT * 0.8
    assert_equal [LIMIT], rows.map(&:limit_bytes).uniq
  end
end
