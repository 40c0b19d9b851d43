# frozen_string_literal: true

module Sdb
  # What is for Rack apps: `use Sdb::Rack::Middleware`, and `run Sdb::Rack::Status.new` for who wants figures by HTTP.
  # Needs no Rack itself, only its protocol.
  module Rack
    autoload :Body, "#{__dir__}/rack/body"
    autoload :Builder, "#{__dir__}/rack/builder"
    autoload :Middleware, "#{__dir__}/rack/middleware"
    autoload :Names, "#{__dir__}/rack/names"
    autoload :Status, "#{__dir__}/rack/status"

    # Where the open span of a request is, for who wants to name or tag it.
    SPAN = "sdb.span"
  end
end
