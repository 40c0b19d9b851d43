# frozen_string_literal: true

# What `sdb env` lets every Ruby load: RUBYLIB names this folder, RUBYOPT says -rsdb_auto. It is read by Rubies of all kinds
# and versions, before the program and perhaps before RubyGems, so it must stay plain, activate no gem and never raise:
# where no recorder was built for this very Ruby it does nothing.
#
# RUBYOPT is split at spaces and nothing in it can be quoted. Therefore the path is in RUBYLIB, which is only split at colons.
# `sdb env` also leaves a copy in the user's data folder, which RUBYLIB names second: when the gem is removed or
# upgraded, the shells and services that still have the variables find that one instead of failing.
if defined?(RUBY_ENGINE) && RUBY_ENGINE == "ruby" && RUBY_VERSION.to_f >= 3.1 && ENV["SDB"] != "0"
  begin
    require "rbconfig"
    sdb_library = RbConfig::CONFIG.values_at("ruby_version", "arch").join("-") + "/sdb_recorder."
    sdb_places = [File.expand_path("../..", __dir__)]
    # Another Ruby may have a gem of its own. No RubyGems is asked: that would activate it.
    sdb_places += Gem.path.map { |dir| Dir.glob("gems/sdb-[0-9]*/lib", base: dir).sort.reverse.map { |lib| File.join(dir, lib) } }.flatten if defined?(Gem)
    sdb_place = sdb_places.find do |lib|
      File.exist?(File.join(lib, "sdb", "#{sdb_library}#{RbConfig::CONFIG["DLEXT"]}")) ||
        File.exist?(File.join(lib, "sdb", "#{sdb_library}stub"))
    end
    require File.join(sdb_place, "sdb", "auto") if sdb_place
  rescue StandardError, ScriptError => e
    warn "sdb: not recording: #{e.class}: #{e.message}"
  end
end
