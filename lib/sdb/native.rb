# frozen_string_literal: true

require "rbconfig"
require_relative "span"

module Sdb
  # Where the two native libraries put their classes, and how a missing one is met: a library that could not be
  # built left a `.stub` file with the reason beside it, and then nothing raises at load.
  module Native
    # The library that lives in the profiled process.
    # nil when it is loaded, else why it is not.
    #: () -> String?
    def self.recorder_missing = (@recorder_missing = load_library("recorder") unless defined?(@recorder_missing)) || @recorder_missing

    # The library that reads logs.
    #: () -> String?
    def self.reader_missing = (@reader_missing = load_library("reader") unless defined?(@reader_missing)) || @reader_missing

    # Libraries lie in a folder named after the Ruby they were built for: a GEM_HOME may be shared by several, and each must
    # find its own or none. By its path, so that no gem is activated.
    FOLDER = File.join(__dir__, RbConfig::CONFIG.values_at("ruby_version", "arch").join("-"))

    def self.load_library(name)
      path = File.join(FOLDER, "sdb_#{name}.#{RbConfig::CONFIG["DLEXT"]}")
      require(File.exist?(path) ? path : "sdb/sdb_#{name}")
      put_before_stand_ins if name == "recorder"
      nil
    rescue LoadError => e
      stub = File.join(FOLDER, "sdb_#{name}.stub")
      File.exist?(stub) ? File.read(stub).strip : "sdb_#{name} is not built (#{e.message}); run `rake compile` or reinstall the gem"
    end
    private_class_method :load_library

    # Those of span.rb.
    def self.put_before_stand_ins
      SpanMethods.filter = Sdb.tag_filter
      Sdb.singleton_class.prepend(SpanMethods)
    end
    private_class_method :put_before_stand_ins

    # For Sdb.filter. Loads nothing: the filter is taken along when the recorder is.
    #: (untyped) -> void
    def self.filter_tags(filter)
      SpanMethods.filter = filter if const_defined?(:SpanMethods, false)
    end
  end
  private_constant :Native
end
