# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# extconf.rb - builds sdb_recorder, the library that lives in the profiled app, or installs a stub where
# it cannot be built. One folder a layer; see ../README.md.

require_relative "../build/build_support"

if (reason = SdbBuild.obstacle(any_platform: false))
  SdbBuild.install_stub("recorder", reason)
  SdbBuild.dummy_makefile
else
  require "mkmf"

  have_library("pthread")
  have_func("rb_internal_thread_add_event_hook", "ruby/thread.h") # 3.2+
  have_func("rb_internal_thread_specific_get", "ruby/thread.h") # 3.3+
  have_func("rb_postponed_job_preregister", "ruby/debug.h") # 3.3+
  have_func("rb_iseq_line_no") # exported, in no public header; vm/calibrate.c and the symbolizer refuse without it
  SdbBuild.create("recorder", %w[core scan vm spans recorder glue ../format], __dir__)
end
