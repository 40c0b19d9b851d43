# frozen_string_literal: true

require "json"
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
        [Zlib.gzip(bytes, level: 6)].pack("m0")
      end
    end
  end
end
