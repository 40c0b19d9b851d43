# frozen_string_literal: true

require "test_helper"
require "support/recording_helper"
require "sdb/rack"

# The middleware alone, with bodies and servers of all kinds. Under real servers: test/integration.
class TestRackMiddleware < Minitest::Test
  include RecordingHelper

  # Does what a body must do and remembers it.
  class Body
    attr_reader :closed

    def each = yield("part")
    def close = @closed = true
    def to_path = "/some/file"
  end

  def env(path = "/posts/5", **more)
    { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path }.merge(more.transform_keys(&:to_s))
  end

  def app(status = 200, body = ["ok"], &block) = Sdb::Rack::Middleware.new(block || ->(_) { [status, {}, body] })

  # A span that stays open would leave its tags to the tests that follow on this thread.
  def teardown
    assert_empty Sdb.tags
  end

  def test_without_a_recording_the_response_is_passed_on_as_it_is
    response = [200, {}, ["ok"]]
    assert_same response, app { response }.call(env)
  end

  def test_a_span_ends_when_a_plain_server_closes_the_body
    body = Body.new
    profile = record do
      _, _, wrapped = app(201, body).call(env)
      parts = []
      wrapped.each { |part| parts << part }
      assert_equal ["part"], parts
      assert_equal "/some/file", wrapped.to_path
      refute_respond_to wrapped, :to_ary
      refute_respond_to wrapped, :to_str
      sleep 0.02
      wrapped.close
      assert body.closed
    end
    span = spans_of(profile).first
    assert_equal ["GET /posts/:id", 201, false], [span.name, span.status, span.open]
    assert_operator span.wall_ns, :>=, 20_000_000
  end

  def test_a_body_taken_as_an_array_ends_its_span
    profile = record do
      _, _, body = app(200, %w[a b]).call(env)
      assert_equal %w[a b], body.to_ary
    end
    refute spans_of(profile).first.open
  end

  def test_a_streaming_body_may_be_called
    profile = record do
      stream = +""
      _, _, body = app(200, ->(out) { out << "streamed" }).call(env)
      refute_respond_to body, :to_path
      assert_respond_to body, :call
      body.call(stream)
      assert_equal "streamed", stream
      body.close
    end
    refute spans_of(profile).first.open
  end

  def test_servers_that_tell_when_they_are_through_get_the_body_as_it_is
    %w[rack.response_finished rack.after_reply].each do |key|
      callbacks = []
      body = ["ok"]
      profile = record do
        _, _, given = app(200, body).call(env(key => callbacks))
        assert_same body, given
        sleep 0.01
        callbacks.each { |callback| key == "rack.after_reply" ? callback.call : callback.call({}, 200, {}, nil) }
      end
      span = spans_of(profile).first
      refute span.open, key
      assert_operator span.wall_ns, :>=, 10_000_000
    end
  end

  def test_what_the_app_raises_or_throws_goes_through
    profile = record do
      assert_raises(KeyError) { app { raise KeyError, "x" }.call(env) }
      assert_equal :thrown, catch(:async) { app { throw :async, :thrown }.call(env("/async")) }
    end
    raised, thrown = spans_of(profile)
    assert_equal [500, "KeyError", "ended"], [raised.status, raised.tags["error"], thrown.status]
    assert_equal [0, 0], [raised.parent, thrown.parent]
  end

  def test_one_in_another_makes_one_span
    inner = app(200)
    replied = []
    profile = record do
      Sdb::Rack::Middleware.new(inner).call(env("rack.after_reply" => replied))
      replied.each(&:call)
    end
    assert_equal 1, spans_of(profile).size
  end

  def test_names_leave_ids_out
    names = { "/posts/17" => "/posts/:id", "/posts" => "/posts", "/" => "/", "" => "", "/v1/users" => "/v1/users",
              "/a/6f1c1b8e-2f6e-4c1e-9c57-2a1f0f2d7a11/b" => "/a/:id/b", "/f/2024-05-01" => "/f/:id",
              "/s/dGhpc2lzYXRva2VuMTIzNDU2" => "/s/:id", "/assets/app-1.js" => "/assets/:id", "/assets/app.js" => "/assets/app.js",
              "/#{(["x"] * 20).join("/")}" => "/#{(["x"] * 7).join("/")}/..." }
    names.each { |path, name| assert_equal "GET #{name}", Sdb::Rack::Names.by_path(env(path)), path }
  end

  def test_names_of_frameworks_are_taken
    controller = Struct.new(:action_name).new("index")
    controller.class.class_eval { def self.name = "UsersController" }
    assert_equal "UsersController#index", Sdb::Rack::Names.by_framework("action_controller.instance" => controller)
    assert_equal "GET /posts/:id", Sdb::Rack::Names.by_framework("sinatra.route" => "GET /posts/:id")
    assert_nil Sdb::Rack::Names.by_framework({})
  end

  def test_strange_requests_are_served_and_recorded
    profile = record do
      ["\xff\xfe/1", "/\u0000/2", nil].each do |path|
        assert_served(env(path))
      end
      assert_served(env("/", HTTP_X_REQUEST_ID: "\xff" * 10, HTTP_TRACEPARENT: "\xff-\xff"))
      assert_served({})
    end
    assert_equal ["GET :id/:id", "GET /:id/:id", "GET ", "GET /", " "], spans_of(profile).map(&:name)
  end

  def assert_served(request)
    status, _, body = app(200).call(request)
    assert_equal 200, status
    body.close if body.respond_to?(:close)
  end
end
