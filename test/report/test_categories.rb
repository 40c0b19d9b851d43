# frozen_string_literal: true

require "test_helper"
require "sdb/shared/categories"

class TestReportCategories < Minitest::Test
  SHOP = Sdb::Categories.new(["/srv/shop"])

  {
    ["Order#total", "/srv/shop/app/models/order.rb"] => :app,
    ["Rack::Runtime#call", "/srv/shop/vendor/bundle/ruby/3.3.0/gems/rack-3.1.7/lib/rack/runtime.rb"] => :gem,
    ["Puma::Server#run", "/usr/local/bundle/gems/puma-6.4.2/lib/puma/server.rb"] => :gem,
    ["Mine#call", "/srv/shop/vendor/cache/bundler/gems/mine-0a1b2c/lib/mine.rb"] => :gem,
    ["Redmine::I18n#l", "/usr/lib/ruby/vendor_ruby/i18n.rb"] => :gem,
    ["Sdb::Rack::Middleware#call", "/home/me/src/sdb/lib/sdb/integrations/rack/middleware.rb"] => :gem,
    ["Stock#deb", "/srv/shop/lib/sdb/stock.rb"] => :app,
    ["JSON.generate", "/usr/lib/ruby/3.1.0/json/common.rb"] => :stdlib,
    ["Set#add", "/opt/rubies/lib/ruby/3.4.0/set.rb"] => :stdlib,
    ["Kernel#tap", "<internal:kernel>"] => :stdlib,
    ["Array#each", nil] => :c,
    ["Array#map", ""] => :c,
    ["(not yet named)", ""] => :internal,
    ["method_missing", "(eval at /srv/shop/app/x.rb:3)"] => :eval,
    ["Helper#x", "/srv/shop-tools/x.rb"] => :app,
    ["Kernel#sleep", "<cfunc>"] => :c,
    ["Ours#call", "/srv/shop/lib/ruby/ours.rb"] => :app,
    ["<main>", "script.rb"] => :app
  }.each do |(name, path), category|
    define_method("test_#{name}_of_#{path.inspect}_is_#{category}") { assert_equal category, SHOP.of(name, path) }
  end

  def test_without_a_known_root_whatever_is_no_gem_and_not_rubys_is_the_apps
    anywhere = Sdb::Categories.new([nil, "", "/"])
    assert_equal :app, anywhere.of("A#b", "/home/me/a.rb")
    assert_equal :gem, anywhere.of("A#b", "/var/lib/gems/3.1.0/gems/a-1/lib/a.rb")
  end
end
