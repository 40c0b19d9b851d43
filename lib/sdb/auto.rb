# frozen_string_literal: true

# Records this process from here on and makes requests, jobs and tasks spans, unless SDB=0 or this is one of the tools of
# program.rb. Loaded by `sdb env`, by RUBYOPT=-rsdb/auto where the gem can be seen, and by `sdb record`.
#
# Nothing on the way from here may load a part of Ruby that is also a gem (etc, tmpdir, json, ...): RubyGems would
# activate it, and the app's bundle may want another version.
require_relative "../sdb"

Sdb.start_by_environment unless ENV["SDB"] == "0"
