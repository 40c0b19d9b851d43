# frozen_string_literal: true

require_relative "log_set"
require_relative "profile"

module Sdb
  # A profile of ring files, dumps, directories (all rings in them), or "latest"; without arguments of the
  # default directories (CLI.md, "Which log"). NoRingError when there is none.
  #: (*String, ?pid: Integer?, ?window: Range[Integer]?) -> Profile ! NoRingError
  def self.open(*paths, pid: nil, window: nil)
    Profile.new(LogSet.resolve(paths, pid: pid).paths, window: window)
  end
end
