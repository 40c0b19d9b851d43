# frozen_string_literal: true

# For an app that names the middleware or the status endpoint itself: `use Sdb::Rack::Middleware`, `run Sdb::Rack::Status.new`.
require_relative "../sdb"
require "#{Sdb::LIB}/sdb/integrations/rack"
