# frozen_string_literal: true

require "test_helper"
require "json"
require "sdb/rack"
require "support/case_helper"
require "support/recording_helper"

# What a log may know: README, "What a log contains".
class TestPrivacy < Minitest::Test
  include RecordingHelper

  PATHS = {
    "/password_resets/kQx9PzLmWvTnRsAbCd/edit" => %w[/password_resets/:id/edit /password_resets/:id/edit],
    "/password_resets/abcdefGhIjkLmNopQrStU/edit" => %w[/password_resets/:id/edit /password_resets/:id/edit],
    "/unsubscribe/jane@example.org" => %w[/unsubscribe/:id /unsubscribe/:id],
    "/orders/4711" => %w[/orders/:id /orders/4711], "/verify/deadbeefcafe" => %w[/verify/:id /verify/:id],
    "/cards/4111111111111111" => %w[/cards/:id /cards/:id], "/api/v2/getUser" => %w[/api/v2/getUser /api/v2/getUser],
    "/caf\u00e9".b => %w[/:id /:id], "/\xFF" => %w[/:id /:id]
  }.freeze

  def teardown
    Sdb.filter
    super
  end

  def request(path, **more)
    { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path }.merge(more.transform_keys(&:to_s))
  end

  def test_of_a_path_only_what_looks_like_words_of_a_route_is_kept_and_numbers
    app = Sdb::Rack::Middleware.new(->(_) { [200, {}, ["ok"]] })
    profile = record { PATHS.each_key { |path| app.call(request(path)).last.close } }
    found = spans_of(profile).sort_by(&:start_ns).map { |span| [span.name.delete_prefix("GET "), span.tags["path"]] }
    assert_equal PATHS.values, found
  end

  def test_random_tokens_are_no_words
    random = Random.new(1)
    letters = [*"a".."z", *"A".."Z", *"0".."9", "-", "_"]
    tokens = Array.new(5000) { Array.new(20) { letters.sample(random: random) }.join }
    tokens += Array.new(5000) { random.bytes(8).unpack1("H*") }
    assert_empty(tokens.select { |token| Sdb::Rack::Names.pattern("/#{token}") == "/#{token}" })
  end

  def test_neither_query_nor_headers_nor_body_is_in_the_log
    app = Sdb::Rack::Middleware.new(->(env) { [200, { "set-cookie" => "sid=cookie-out" }, [env["rack.input"].read]] })
    record do
      app.call(request("/search", "QUERY_STRING" => "q=query-secret", "HTTP_COOKIE" => "sid=cookie-in", "HTTP_AUTHORIZATION" => "Bearer header-secret",
                                  "rack.input" => StringIO.new("password=body-secret"))).last.close
    end
    bytes = Dir[File.join(@dir, "*.sdb")].map { |path| File.binread(path) }.join
    assert_includes bytes, "GET /search"
    %w[query-secret cookie-in cookie-out header-secret body-secret].each { |secret| refute_includes bytes, secret }
  end

  def test_a_filter_decides_which_tags_are_recorded
    profile = record do
      Sdb.filter { |tags| tags.except(:email).transform_values { |v| v.to_s.sub("secret", "***") } }
      Sdb.span("job", kind: :job, id: "secret-id", email: "a@b.c", note: "a secret") do
        Sdb.tag(email: "x@y.z", only: 1) { assert_equal({ note: "a ***", only: "1" }, Sdb.tags) }
      end
      Sdb.span("later") { Sdb.current_span.tag(email: "late@b.c", more: "m") }
      Sdb.filter
      Sdb.span("free", email: "free@b.c") { nil }
    end
    spans = spans_by_name(profile)
    assert_equal ["job", "secret-id", { "note" => "a ***" }], [spans["job"].kind, spans["job"].id, spans["job"].tags]
    assert_equal [{ "more" => "m" }, { "email" => "free@b.c" }], [spans["later"].tags, spans["free"].tags]
    bytes = Dir[File.join(@dir, "*.sdb")].map { |path| File.binread(path) }.join
    %w[a@b.c x@y.z late@b.c].each { |secret| refute_includes bytes, secret }
  end

  def test_a_filter_that_fails_lets_nothing_through_and_the_app_go_on
    profile = record do
      Sdb.filter { |_| Integer("broken") }
      _, err = capture_io { 2.times { assert_equal 7, Sdb.span("s", kind: :job, id: "i", k: 1) { 7 } } }
      assert_equal "sdb: the filter of tags raised ArgumentError: invalid value for Integer(): \"broken\"; these tags are left out\n", err
      Sdb.filter { |_| :no_hash }
      assert_equal 7, Sdb.span("s", kind: :job, id: "i", k: 1) { 7 }
    end
    assert_equal [[{}, "job", "i"]] * 3, spans_of(profile).map { |span| [span.tags, span.kind, span.id] }
  end

  def test_a_filter_given_before_the_start_holds_and_loads_nothing
    script = <<~RUBY
      require "sdb"
      Sdb.filter { |tags| tags.except(:secret) }
      abort "loaded" if $LOADED_FEATURES.grep(/sdb_recorder/).any?
      Sdb.start(dir: ARGV[0], ring: 4 << 20)
      Sdb.span("x", secret: "hidden", shown: 1) { sleep 0.01 }
      puts Sdb.stop
    RUBY
    path = IO.popen([RbConfig.ruby, "-I#{File.expand_path("../lib", __dir__)}", "-e", script, @dir], &:read).chomp
    assert_equal [{ "shown" => "1" }], Sdb.open(path).spans.spans.map(&:tags)
  end

  def test_secrets_of_the_command_line_are_not_recorded
    arguments = %w[serve --port=80 --api-key=k1 --password k2 --verbose SECRET_TOKEN=k3 postgres://user:k4@db/x https://db/a@b -x]
    assert_equal %w[serve --port=80 --api-key=[FILTERED] --password [FILTERED] --verbose SECRET_TOKEN=[FILTERED] postgres://[FILTERED] https://db/a@b -x],
                 recorded_argv(arguments).last(10)
  end

  def test_the_command_line_can_be_left_out
    assert_empty recorded_argv(%w[hello --there], "SDB_ARGV" => "0")
  end

  def test_the_status_endpoint_tells_strangers_no_paths_and_no_pid
    path = nil
    record do
      path = Sdb.status.fetch(:ring)
      documents = [Sdb::Rack::Status.new, Sdb::Rack::Status.new(details: true)].map do |endpoint|
        JSON.parse(endpoint.call("REQUEST_METHOD" => "GET", "HTTP_ACCEPT" => "application/json").last.join)
      end
      assert_equal [[nil, nil], [Process.pid, path]], documents.map { |document| document.values_at("pid", "ring") }
      assert_equal "running", documents.first["state"].sub("parked", "running")
    end
    endpoint = Sdb::Rack::Status.new
    document = { reason: "cannot create a ring in /srv/app/tmp: x (/y/z.sdb)", warnings: ["SDB_DIR=/secret/place: odd; using 1/2"], pid: 1, ring: "/r" }
    assert_equal({ reason: "cannot create a ring in (path): x ((path))", warnings: ["SDB_DIR=(path): odd; using 1/2"] },
                 endpoint.send(:public_part, document))
  end

  private

  def recorded_argv(arguments, env = {})
    program = File.join(@dir, "program.rb")
    File.write(program, 'require "sdb"; Sdb.start(ring: 4 << 20); puts Sdb.stop')
    command = [RbConfig.ruby, "-I#{File.expand_path("../lib", __dir__)}", program, *arguments]
    path = IO.popen({ "SDB_DIR" => @dir }.merge(env), command, &:read).chomp
    bytes = File.binread(path)
    %w[k1 k2 k3 k4].each { |secret| refute_includes bytes[0, 8192], secret } if env.empty?
    Sdb::Ring.read(path).argv
  end
end
