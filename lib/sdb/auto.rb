# frozen_string_literal: true

# Starts recording when loaded, unless SDB=0: `RUBYOPT=-rsdb/auto`, or SDB=1 with the gem in the bundle.
require_relative "../sdb"

# The sdb command itself is not recorded: with a global RUBYOPT it would show up among the processes it lists.
unless ENV["SDB"] == "0" || File.basename($PROGRAM_NAME) == "sdb"
  begin
    Sdb.start
  rescue StandardError => e
    warn "sdb: not recording: #{e.message}"
  end
end
