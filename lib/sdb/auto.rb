# frozen_string_literal: true

# Starts recording when loaded, unless SDB=0: `RUBYOPT=-rsdb/auto`, or SDB=1 with the gem in the bundle.
require_relative "../sdb"

unless ENV["SDB"] == "0"
  begin
    Sdb.start
  rescue StandardError => e
    warn "sdb: not recording: #{e.message}"
  end
end
