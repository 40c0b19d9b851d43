# frozen_string_literal: true

module Sdb
  # Paths as people read them: relative to the app's root, "rack-3.0.8/lib/rack/builder.rb" for a gem's file,
  # "ruby-3.4.5/set.rb" for one of Ruby's own library. The whole path is in every JSON document.
  class Paths
    # Gems, also those of Bundler's git sources and Debian's packages: the last folder of that kind counts.
    GEM = %r{\A.*/(?:gems|bundler/gems)/(?=[^/]+-[^/]*\d[^/]*/)}
    STDLIB = %r{\A.*/lib(?:64)?/ruby/(?=\d+\.\d+\.\d+/)}
    VENDOR = %r{\A.*/(?=(?:vendor_ruby|site_ruby)/)}
    private_constant :GEM, :STDLIB, :VENDOR

    # roots: directories of the profiled applications.
    #: (Array[String?]) -> void
    def initialize(roots)
      @roots = roots.compact.reject { |root| ["", "/"].include?(root) }
                    .map { |root| root.end_with?("/") ? root : "#{root}/" }.uniq.sort_by { |root| -root.size }
      @short = {}
    end

    # Of the rings that were asked.
    #: (Array[Ring]) -> Paths
    def self.of(rings) = new(rings.filter_map { |ring| ring.text["app_root"] })

    #: (String?) -> String?
    def short(path)
      return path unless path&.start_with?("/")

      @short[path] ||= shorten(path)
    end

    private

    def shorten(path)
      text = path.valid_encoding? ? path : path.scrub
      return text.sub(GEM, "") if text.match?(GEM)
      return "ruby-#{text.sub(STDLIB, "")}" if text.match?(STDLIB)
      return text.sub(VENDOR, "") if text.match?(VENDOR)

      root = @roots.find { |dir| text.start_with?(dir) }
      root ? text.delete_prefix(root) : text
    end
  end
end
