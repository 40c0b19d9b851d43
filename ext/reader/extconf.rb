# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# extconf.rb - builds sdb_reader, the library of the command line: plain POSIX, so it builds on any platform
# that has a compiler. One folder a layer; see ../README.md.

require_relative "../build/build_support"

if (reason = SdbBuild.obstacle(any_platform: true))
  SdbBuild.install_stub("reader", reason)
  SdbBuild.dummy_makefile
else
  require "mkmf"

  SdbBuild.create("reader", %w[log profile glue ../format], __dir__)
end
