# frozen_string_literal: true

# Sdb.open and what it needs, loaded at once instead of with the first question.
require_relative "../sdb"
require "#{Sdb::LIB}/sdb/log_set"
require "#{Sdb::LIB}/sdb/profile"
