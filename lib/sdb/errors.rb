# frozen_string_literal: true

module Sdb
  # What sdb raises. A message says what happened and what to do about it, in one or two lines.
  class Error < StandardError; end

  # A file is not a ring, was written by a newer major format, or its fixed parts are damaged.
  class FormatError < Error; end

  # No ring where one was looked for.
  class NoRingError < Error; end

  # A filter's value makes no sense (`--last abc`, `--state busy`), or a name that the log does not hold.
  class FilterError < Error; end

  # This platform, Ruby or installation cannot do it (no recorder built, layout not proven).
  class UnsupportedError < Error; end

  # The command line was wrong: exit status 2.
  class UsageError < Error; end
end
