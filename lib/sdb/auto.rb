# frozen_string_literal: true

# Starts recording when loaded and makes requests, jobs and tasks spans, unless SDB=0: `RUBYOPT=-rsdb/auto`, or SDB=1
# with the gem in the bundle.
require_relative "../sdb"

unless ENV["SDB"] == "0"
  begin
    Sdb.start
    if Sdb::Recorder.current&.running?
      Sdb.instance_variable_set(:@auto, true)
      require_relative "integrations"
      Sdb::Integrations.arrange
    end
  rescue StandardError => e
    warn "sdb: not recording: #{e.message}"
  end
end
