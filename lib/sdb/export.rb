# frozen_string_literal: true

require_relative "errors"

module Sdb
  # Formats of other tools. A format is a file export/<name>.rb that defines a module of the same name in camel case
  # under Export (collapsed.rb: Collapsed) with
  #
  #   SUMMARY    one line for the list
  #   EXTENSION  of its files, as ".txt"
  #   options(parser, values)   optional: defines its own options, which put their values into the Hash
  #   write(profile, io, metric:, filters:, **values)   writes bytes or text to io
  #
  # Nothing else has to know it.
  module Export
    DIR = File.join(__dir__, "export")

    module_function

    #: () -> Array[String]
    def names
      Dir.children(DIR).filter_map { |file| file.delete_suffix(".rb") if file.end_with?(".rb") }.sort
         .select { |name| fetch(name) }
    end

    # nil when there is none. Files of export/ that define no format are helpers.
    #: (String) -> Module?
    def fetch(name)
      return unless name.match?(/\A[a-z][a-z0-9_]*\z/) && File.file?(File.join(DIR, "#{name}.rb"))

      require_relative "export/#{name}"
      const = name.split("_").map(&:capitalize).join
      format = const_get(const, false) if const_defined?(const, false)
      format if format.respond_to?(:write) && format.const_defined?(:SUMMARY)
    end
  end
end
