# frozen_string_literal: true

module Sdb
  module Oom
    # CRC-32C in Ruby, for the few kilobytes that `sdb oom list` looks at of each dump. The ring inside has its own
    # sums, which the reader proves.
    module Crc32c
      POLYNOMIAL = 0x82f63b78

      TABLE = Array.new(256) do |byte|
        8.times { byte = byte.odd? ? (byte >> 1) ^ POLYNOMIAL : byte >> 1 }
        byte
      end.freeze

      #: (String, ?Integer) -> Integer
      def self.of(bytes, crc = 0)
        crc ^= 0xffffffff
        bytes.each_byte { |byte| crc = TABLE[(crc ^ byte) & 0xff] ^ (crc >> 8) }
        crc ^ 0xffffffff
      end
    end
  end
end
