# frozen_string_literal: true

# Redmine as Debian ships it, with Puma: an app that nobody here wrote, recorded by the environment alone. Runs inside the
# folder that `rake test:redmine` makes, on Debian's Ruby and gems; sdb is installed there as a gem.

require "fileutils"
require "json"
require "minitest/autorun"
require "net/http"
require "open3"
require "socket"
require "tmpdir"

class TestRedmine < Minitest::Test
  HOME = "/usr/share/redmine"
  ISSUES = 60
  # What is asked => what it must be called.
  PAGES = {
    "/projects" => "ProjectsController#index", "/projects/project-1" => "ProjectsController#show",
    "/projects/project-1/issues" => "IssuesController#index", "/issues/5" => "IssuesController#show",
    "/issues/77" => "IssuesController#show", "/projects/project-0/wiki" => "WikiController#show",
    "/projects/project-0/issues/gantt" => "GanttsController#show", "/projects/project-1/issues.json" => "IssuesController#index",
    "/issues/99999" => "IssuesController#show", "/nowhere" => "GET /nowhere"
  }.freeze

  def setup
    @work = Dir.mktmpdir("sdb-redmine")
    @rings = File.join(@work, "rings")
    @port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
  end

  def teardown
    Process.kill(:KILL, @pid) if @pid
    FileUtils.rm_rf(@work)
  end

  def test_switched_on_by_environment_alone_it_names_its_endpoints
    fill
    serve("SDB_DIR" => @rings, "SDB_SERVICE" => "redmine")
    bodies = ask_all(3)
    finish

    spans = sdb("slow", "--limit", "0").fetch("spans")
    PAGES.each_value { |name| assert_includes spans.map { |span| span["name"] }, name }
    assert_empty spans.map { |span| span["name"] } - PAGES.values
    assert_equal 3 * PAGES.size, spans.size
    spans.each do |span|
      page = PAGES.keys.find { |path| logged(path) == span["tags"]["path"] }
      assert page, span["tags"].inspect
      assert_equal PAGES.fetch(page), span["name"]
      assert_includes bodies.fetch(page), span["status"].to_s
      refute span["open"]
      assert_equal 0, span["parent"]
    end
    requests(spans)
    flame_graph(spans)
    views
  end

  # A project's own name is nobody's business.
  def logged(path) = path.sub(/project-\d/, ":id")

  # By the names of their files, as everybody who works on Redmine knows them.
  def views
    names = sdb("functions").fetch("functions").map { |function| function["name"] }
    %w[app/views/issues/show.html.erb app/views/issues/index.html.erb app/views/layouts/base.html.erb].each do |view|
      assert(names.any? { |name| name.include?(view) }, "#{view} in #{names.grep(/views/).first(20)}")
    end
  end

  # Its timeline covers it, and its stacks are Redmine's. Not of the first round, in which half of Redmine is loaded.
  def requests(spans)
    warm = spans.sort_by { |span| span["start"] }.drop(PAGES.size).select { |span| span["status"] == 200 }
    warm.max_by(5) { |span| span["wall_ns"] }.each do |span|
      request = sdb("request", span["id"])
      assert_equal span["wall_ns"], request["runs"].sum { |run| run["ns"] }
      action = span["name"]
      with = request["runs"].select { |run| run["frames"].any? { |frame| frame["name"] == action } }
      # the rest is middleware, filters and what Rails renders after the action
      assert_operator with.sum { |run| run["ns"] }, :>, span["wall_ns"] / 5, "time inside #{action}"
      path = with.first["frames"].find { |frame| frame["name"] == action }["path"]
      assert path.start_with?("#{HOME}/app/controllers/"), path
    end
  end

  def flame_graph(spans)
    functions = sdb("functions", "--endpoint", "GanttsController#show", "--metric", "cpu").fetch("functions")
    assert_includes functions.map { |f| f["name"] }, "GanttsController#show"
    total = spans.select { |span| span["name"] == "GanttsController#show" }.sum { |span| span["cpu_ns"] }
    assert_in_delta total, functions.find { |f| f["name"] == "GanttsController#show" }["total_ns"], total * 0.35
    page = File.join(@work, "flame.html")
    out, status = Open3.capture2e("sdb", "flamegraph", "-o", page, @rings)
    assert_predicate status, :success?, out
    assert_operator File.size(page), :>, 50_000
  end

  # Some projects with issues and a wiki page each.
  def fill
    code = <<~RUBY
      exit if Project.count >= 3
      user, tracker, priority, status = User.where(login: "admin").first, Tracker.first, IssuePriority.first, IssueStatus.first
      3.times do |n|
        project = Project.create!(name: "Project \#{n}", identifier: "project-\#{n}", is_public: true, trackers: Tracker.all.to_a,
                                  enabled_module_names: %w[issue_tracking wiki gantt])
        #{ISSUES}.times do |i|
          Issue.create!(project: project, tracker: tracker, author: user, priority: priority, status: status, subject: "Issue \#{i}",
                        description: "some *text*\\n" * 40, start_date: Date.today, due_date: Date.today + i % 20)
        end
        page = project.reload.wiki.pages.create!(title: "Wiki")
        WikiContent.create!(page: page, text: "h1. Hello\\n\\n" + "* one two\\n" * 80, author: user)
      end
    RUBY
    run_inside("bin/rake", "redmine:load_default_data", may_fail: true) # the package may have done it
    run_inside("bin/rails", "runner", code)
  end

  def run_inside(*command, may_fail: false)
    env = { "RAILS_ENV" => "production", "REDMINE_LANG" => "en" }
    out, status = Open3.capture2e(env, "ruby", *command, chdir: HOME)
    assert_predicate status, :success?, out.lines.first(10).join unless may_fail
  end

  # As README says it: in a shell, under Bundler, with sdb not in Redmine's bundle.
  def serve(env)
    @log = File.join(@work, "puma.log")
    command = "eval \"$(sdb env)\" && exec bundle exec puma -b tcp://127.0.0.1:#{@port} -t 5:5 -e production config.ru"
    @pid = Process.spawn({ "RAILS_ENV" => "production" }.merge(env), "sh", "-c", command, chdir: HOME, out: @log, err: %i[child out], in: File::NULL)
    120.times do
      TCPSocket.open("127.0.0.1", @port).close
      return
    rescue SystemCallError
      flunk File.read(@log) if Process.wait(@pid, Process::WNOHANG)
      sleep 0.5
    end
    flunk "Redmine does not listen\n#{File.read(@log)}"
  end

  # { path => its statuses }
  def ask_all(times)
    answers = Hash.new { |hash, path| hash[path] = [] }
    times.times { PAGES.each_key { |path| answers[path] << Net::HTTP.get_response("127.0.0.1", path, @port).code } }
    PAGES.each_key { |path| assert_equal path.match?(/9999|nowhere/) ? ["404"] : ["200"], answers[path].uniq, path }
    answers
  end

  def finish
    Process.kill(:TERM, @pid)
    100.times { Process.wait(@pid, Process::WNOHANG) ? (return @pid = nil) : sleep(0.1) }
    Process.kill(:KILL, @pid)
    Process.wait(@pid)
    @pid = nil
  end

  def sdb(*arguments)
    out, err, status = Open3.capture3("sdb", *arguments, "--json", @rings)
    assert_predicate status, :success?, err
    JSON.parse(out)
  end
end
