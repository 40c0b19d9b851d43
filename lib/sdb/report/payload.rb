# frozen_string_literal: true

require "json"
require "stringio"
require "zlib"

module Sdb
  module Report
    # The data of a page as text: base64 of gzip of
    #
    #   uint32 little-endian: bytes of the JSON
    #   JSON: everything small, plus "columns": [[name, count], ..]
    #   the columns in that order, each value a big-endian base-128 integer (Array#pack "w")
    #
    # Integers go in columns because a JSON array of a million numbers costs the browser seconds and the
    # file megabytes; "w" because Ruby packs it in C. assets/base.js is the decoder.
    module Payload
      module_function

      #: (Hash[Symbol, untyped] document, Hash[Symbol, Array[Integer]] columns) -> String
      def encode(document, columns)
        json = JSON.generate(document.merge(columns: columns.map { |name, values| [name, values.size] }))
        bytes = [json.bytesize].pack("V") << json.b
        columns.each_value { |values| bytes << values.pack("w*") }
        [gzip(bytes)].pack("m0")
      end

      # Without a time in it: the same answer is the same page, whenever it is made.
      def gzip(bytes)
        writer = Zlib::GzipWriter.new(StringIO.new(String.new(encoding: Encoding::BINARY)), 6)
        writer.mtime = 1
        writer.write(bytes)
        writer.finish.string
      end
      private_class_method :gzip
    end
  end
end
