# frozen_string_literal: true

module Sdb
  # What is for Rack apps. Needs no Rack itself, only its protocol.
  module Rack
    autoload :Body, "#{__dir__}/rack/body"
    autoload :Builder, "#{__dir__}/rack/builder"
    autoload :Middleware, "#{__dir__}/rack/middleware"
    autoload :Names, "#{__dir__}/rack/names"
    autoload :Status, "#{__dir__}/rack/status"

    # Where the open span of a request is in env, for those who want to name or tag it.
    SPAN = "sdb.span"
  end
end
