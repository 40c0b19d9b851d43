# frozen_string_literal: true

module Sdb
  # What is for Rails apps; railtie.rb puts it in.
  module Rails
    autoload :Middleware, "#{__dir__}/rails/middleware"
    autoload :Notifications, "#{__dir__}/rails/notifications"
    autoload :Trace, "#{__dir__}/rails/trace"
  end
end
