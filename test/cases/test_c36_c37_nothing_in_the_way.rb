# frozen_string_literal: true

require "test_helper"
require "json"
require "support/app_server"
require "support/case_helper"

# Programs that look at who called them, that wrap the methods which sdb follows, and classic Sinatra, which decides by its
# caller whether to serve (C36, C37): as without sdb.
class TestC36C37NothingInTheWay < Minitest::Test
  include CaseHelper

  def outcome(code, **options)
    result = program(code, **options)
    [result.ending, *[result.out, result.err].map { |text| text.gsub(/program-\d+/, "program") }]
  end

  def assert_the_same(code, **options)
    plain, seen = [false, true].map { |with_sdb| outcome(code, with_sdb: with_sdb, options: ["-w"], **options) }
    assert_equal [:exit, 0], plain.first, plain.last
    assert_equal plain, seen
    plain[1]
  end

  # Everything that README of lib/sdb/integrations names, and what was once replaced.
  METHODS = <<~'RUBY'
    methods = [
      Kernel.instance_method(:require), Kernel.method(:require), Kernel.instance_method(:load), Process.method(:fork), Kernel.instance_method(:fork),
      Rake::Task.instance_method(:execute), Rake::Task.instance_method(:invoke), Rack::Builder.method(:parse_file),
      Rack::Builder.instance_method(:to_app), Puma::Cluster.instance_method(:spawn_worker), Puma::Cluster::Worker.instance_method(:spawn_worker),
      Unicorn.method(:builder), Unicorn::Worker.instance_method(:initialize), Unicorn::HttpServer.instance_method(:spawn_missing_workers),
      Unicorn::HttpServer.instance_method(:before_fork), Pitchfork::HttpServer.instance_method(:spawn_worker), Bundler.method(:setup),
      ActiveJob::Base.instance_method(:perform_now)
    ]
    methods.each do |method|
      owner = method.owner
      visibility = %w[public private protected].find { |word| owner.send("#{word}_method_defined?", method.name, false) }
      puts [method.name, owner.inspect, method.arity, method.parameters, method.source_location.inspect, visibility, method.super_method.inspect].join(" ")
    end
    [Kernel.singleton_class, Rake::Task, Rack::Builder.singleton_class, Rack::Builder, Puma::Cluster, Puma::Cluster::Worker, Unicorn.singleton_class,
     Unicorn::Worker, Unicorn::HttpServer, Pitchfork::HttpServer, Bundler.singleton_class, ActiveJob::Base].each { |mod| puts mod.ancestors.inspect }
  RUBY

  def test_each_method_that_is_followed_has_its_owner_arity_parameters_visibility_and_place
    assert_the_same(<<~RUBY + METHODS)
      $VERBOSE = nil # the libraries' own warnings
      require "bundler"
      require "rake"
      require "rack/builder"
      require "puma"
      require "puma/cluster"
      require "unicorn"
      require "pitchfork"
      require "pitchfork/http_server"
      require "active_job"
    RUBY
  end

  def test_nothing_stands_in_caller_while_files_are_loaded_and_an_app_is_made
    File.write(File.join(@dir, "file.rb"), "puts caller.inspect\nmodule FromFile; puts caller.inspect; end\n")
    File.write(File.join(@dir, "config.ru"), "puts caller.inspect\nmap('/a') { puts caller.inspect; run ->(_) { [200, {}, []] } }\n")
    out = assert_the_same(<<~RUBY)
      verbose, $VERBOSE = $VERBOSE, nil
      require "rack/builder"
      $VERBOSE = verbose
      require File.join(__dir__, "file")
      Rack::Builder.parse_file(File.join(__dir__, "config.ru"))
      class Rack::Builder
        def use(*) = puts(caller.inspect)
      end
      Rack::Builder.new { use 1; run ->(_) { [200, {}, []] } }.to_app
    RUBY
    assert_equal 5, out.lines.size
  end

  def test_nothing_stands_in_caller_of_a_task
    assert_the_same(<<~RUBY)
      require "rake"
      task = Rake::Task.define_task(:look) { puts caller.inspect }
      task.invoke
    RUBY
  end

  # As error reporters do it.
  ALIASES = <<~'RUBY'
    class Rake::Task
      alias_method :execute_without_reporter, :execute
      def execute(args = nil)
        puts "reporting #{name}"
        execute_without_reporter(args)
      end
    end
  RUBY

  def test_an_alias_chain_around_execute_made_after_sdb_and_before_it
    task = "Rake::Task.define_task(:work) { sleep 0.05 }.invoke\n"
    assert_the_same("require 'rake'\n#{ALIASES}#{task}")
    before = program!("require 'rake'\n#{ALIASES}require 'sdb/auto'\n#{task}", with_sdb: false, options: ["-w"],
                                                                               env: { "SDB" => nil, "SDB_DIR" => File.join(@dir, "before"), "SDB_RING" => "8M" })
    assert_equal ["reporting work\n", ""], [before.out, before.err]
    [Sdb.open(*Dir[File.join(@dir, "*.sdb")]), Sdb.open(File.join(@dir, "before"))].each do |profile|
      span = profile.spans.spans.first
      assert_equal ["rake work", "task", "ended"], [span.name, span.kind, span.status.to_s]
    end
  end

  def test_a_task_that_raises_is_a_span_that_says_so
    result = program!(<<~RUBY)
      require "rake"
      Rake::Task.define_task(:good) { 1 }.invoke
      Rake::Task.define_task(:bad) { raise "on purpose" }.invoke rescue nil
      Rake::Task.define_task(outer: :good) { Rake::Task.define_task(:inner) { nil }.invoke }.invoke
    RUBY
    spans = log_of(result).spans.spans.sort_by(&:start_ns)
    assert_equal({ "rake good" => "ended", "rake bad" => "raised", "rake outer" => "ended", "rake inner" => "ended" },
                 spans.to_h { |span| [span.name, span.status.to_s] })
    assert_operator spans.find { |span| span.name == "rake inner" }.parent, :positive?
  end

  def test_classes_that_redefine_name_raise_in_their_body_or_are_singletons
    assert_the_same(<<~RUBY)
      class Odd
        def self.name = raise("called")
      end
      class Odd; end
      begin
        module Rack; class Builder; raise "in its body"; end; end
      rescue RuntimeError => e
        puts e.message
      end
      class << Object.new; end
      module Rake; class Task; end; end
      puts 1
    RUBY
  end
end

# Apps and servers, by `sdb env`'s variables.
class TestC37ClassicSinatra < Minitest::Test
  include AppServer

  def test_a_classic_sinatra_app_serves_and_its_requests_are_spans
    port = free_port
    app = File.join(@work, "app.rb")
    File.write(app, <<~RUBY)
      require "sinatra"
      set :port, #{port}
      set :bind, "127.0.0.1"
      get("/hello/:name") { "hello" }
    RUBY
    pid = start(*bundle("ruby", app), port: port, way: :env)
    assert_equal "hello", get!(port, "/hello/you", "X-Request-Id" => "s-1").body
    stop(pid)
    assert_equal [["GET /hello/:name", "s-1", 200]], spans.map { |span| [span.name, span.id, span.status] }
  end
end
