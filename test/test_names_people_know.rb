# frozen_string_literal: true

require_relative "test_helper"
require "support/cli_helper"
require "sdb/open"
require "sdb/shared/paths"

# Templates have the names of their files, paths are short where people read them, and each answer says which part of
# the logs it is about.
class TestNamesPeopleKnow < Minitest::Test
  include CLIHelper

  NAMES = {
    # Action View: a positive and a negative hash, a partial, a block, capitals and digits in the name, another folder
    ["#<Class>#_app_views_posts_index_html_erb__3602156047049003734_8760", "/srv/shop/app/views/posts/index.html.erb"] =>
      "app/views/posts/index.html.erb",
    ["#<Class>#_app_views_posts__post_html_erb___3602156047049003734_8760", "/srv/shop/app/views/posts/_post.html.erb"] =>
      "app/views/posts/_post.html.erb",
    ["block (2 levels) in #<Class>#_app_views_posts__post_html_erb___36_8760", "/srv/shop/app/views/posts/_post.html.erb"] =>
      "block (2 levels) in app/views/posts/_post.html.erb",
    ["#<Class>#_app_views_____admin_index__html_slim__17_80", "/app/app/views/V2_/admin/index2.html.slim"] =>
      "app/views/V2_/admin/index2.html.slim",
    ["ActionView::Base#_var_lib_gems_devise_______app_views_x_html_haml__17_80", "/var/lib/gems/devise-4.9.2/app/views/x.html.haml"] =>
      "var/lib/gems/devise-4.9.2/app/views/x.html.haml",
    ["#<Class>#_app_views_caf__html_erb__17_80", "/srv/app/views/café.html.erb"] => "app/views/café.html.erb",
    # Tilt: Sinatra's ERB, Slim, Haml
    ["Object#__tilt_2380", "/srv/shop/views/index.slim"] => "views/index.slim",
    ["Object#__tilt_2390", "views/pages/index.erb"] => "views/pages/index.erb",
    ["rescue in Tilt::CompiledTemplates#__tilt_2380", "/srv/shop/pages/index.haml"] => "rescue in index.haml",
    # not these
    ["Foo#_run__1_2", "/srv/shop/app/models/foo.rb"] => "Foo#_run__1_2",
    ["Foo#sha256", "/srv/shop/lib/sha256.rb"] => "Foo#sha256",
    ["Foo#_app_views_a_html_erb__1", "/app/views/a.html.erb"] => "Foo#_app_views_a_html_erb__1"
  }.freeze

  def setup
    @dir = Dir.mktmpdir("sdb-names")
  end

  def teardown
    FileUtils.rm_rf(@dir)
  end

  def test_a_compiled_template_is_called_like_its_file
    path = File.join(@dir, "one.sdb")
    names = NAMES.keys
    RingEncoder.write(path, pid: 11) do
      thread :main, tid: 11, main: true
      names.each_with_index { |(name, file), n| code(:"c#{n}", name, path: file, line: 1) }
      names.size.times { |n| at n * 10, main: running("c#{n}:1") }
      finish names.size * 10
    end
    assert_equal NAMES.values.sort, Sdb.open(path).functions.functions.map(&:name).sort
  end

  def test_a_template_of_two_processes_is_one_function
    paths = [[11, "__36_80"], [12, "___77_8"]].map do |pid, numbers|
      RingEncoder.write(File.join(@dir, "#{pid}.sdb"), pid: pid) do
        thread :main, tid: pid, main: true
        code :view, "#<Class>#_app_views_a_html_erb#{numbers}", path: "/srv/app/views/a.html.erb", line: 1
        at 0, main: running("view:1")
        finish 10
      end
    end
    assert_equal ["app/views/a.html.erb"], Sdb.open(*paths).functions.functions.map(&:name)
  end

  def test_code_before_the_first_line_of_a_template_has_no_line
    path = File.join(@dir, "lines.sdb")
    RingEncoder.write(path, pid: 11) do
      thread :main, tid: 11, main: true
      code :view, "Object#__tilt_80", path: "/srv/views/a.erb", line: 4_294_967_290
      at 0, main: running("view:4294967290")
      finish 10
    end
    assert_equal [["views/a.erb", 0]], Sdb.open(path).functions.functions.map { |f| [f.name, f.line.to_i] }
  end

  def test_a_template_engine_may_begin_before_the_first_line
    script = <<~RUBY
      require "sdb"
      Sdb.start(dir: ARGV[0], ring: 4 << 20)
      Object.class_eval("def __tilt_80\n  1\n  stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.4\n  1 while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop\nend", "views/a.erb", -4)
      __tilt_80
      sleep 0.3
      puts Sdb.stop
    RUBY
    path = IO.popen([RbConfig.ruby, "-I#{File.expand_path("../lib", __dir__)}", "-e", script, @dir], &:read).chomp
    view = Sdb.open(path).functions.functions.find { |f| f.name.end_with?("views/a.erb") }
    assert_equal ["views/a.erb", 0], [view.name, view.line.to_i]
  end

  def test_paths_lose_what_everybody_knows
    paths = Sdb::Paths.new(["/srv/shop", nil, "/"])
    { "/srv/shop/app/models/user.rb" => "app/models/user.rb",
      "/srv/shop/vendor/bundle/ruby/3.4.0/gems/puma-6.4.2/lib/puma/server.rb" => "puma-6.4.2/lib/puma/server.rb",
      "/var/lib/gems/3.1.0/bundler/gems/rails-4f2a10/lib/x.rb" => "rails-4f2a10/lib/x.rb",
      "/usr/lib/ruby/3.1.0/set.rb" => "ruby-3.1.0/set.rb",
      "/usr/lib/ruby/vendor_ruby/rack/builder.rb" => "vendor_ruby/rack/builder.rb",
      "/srv/shop-old/a.rb" => "/srv/shop-old/a.rb", "<internal:kernel>" => "<internal:kernel>", "" => "", nil => nil }.each do |path, short|
      short.nil? ? assert_nil(paths.short(path)) : assert_equal(short, paths.short(path))
    end
  end

  def test_text_has_short_paths_and_json_whole_ones
    path = sample
    assert_match(%r{Foo#work  app/foo\.rb:10$}, sdb!("functions", path).out)
    assert_match(%r{Foo#work  app/foo\.rb:12}, sdb!("stacks", path).out)
    assert_equal "/srv/shop/app/foo.rb", sdb!("functions", path, "--json").json["functions"].first["path"]
  end

  def test_each_answer_says_which_part_of_the_logs_it_is_about
    path = sample
    filters = ["--endpoint", "A#b", "--state", "running,gc", "--min-duration", "5ms", "--focus", "Foo", "--only-app", "--tag", "k=v"]
    expected = "only: endpoint A#b   state running,gc   min-duration 5.00 ms   focus /Foo/   only-app   tag k=v"
    %w[functions tree threads slow].each { |command| assert_includes sdb!(command, path, *filters).out, expected, command }
    refute_includes sdb!("functions", path).out, "only:"
  end

  private

  def sample
    RingEncoder.write(File.join(@dir, "sample.sdb"), pid: 11, app_root: "/srv/shop") do
      thread :main, tid: 11, main: true
      code :work, "Foo#work", path: "/srv/shop/app/foo.rb", line: 10
      at 0, main: running("work:12")
      span 0..10, :main, id: "r", name: "A#b", tags: { k: "v" }
      finish 10
    end
  end
end
