# frozen_string_literal: true

# Byte-level pieces of the ring format: varints and CRC-32C. Part of the encoder that is written from
# ext/format/FORMAT.md alone, so that writer, reader and document check each other.
module RingEncoder
  module Bytes
    CRC_TABLE = Array.new(256) do |n|
      8.times { n = n.odd? ? (n >> 1) ^ 0x82f63b78 : n >> 1 }
      n
    end.freeze

    module_function

    def crc32c(*pieces)
      crc = 0xffffffff
      pieces.each { |s| s.each_byte { |b| crc = CRC_TABLE[(crc ^ b) & 0xff] ^ (crc >> 8) } }
      crc ^ 0xffffffff
    end

    def varint(number)
      number &= 0xffff_ffff_ffff_ffff
      out = String.new(encoding: Encoding::BINARY)
      while number > 0x7f
        out << ((number & 0x7f) | 0x80)
        number >>= 7
      end
      out << number
    end

    def varints(*numbers) = numbers.map { |n| varint(n) }.join.b

    def zigzag(number) = varint(number.negative? ? (-number << 1) - 1 : number << 1)

    # A length, then so many bytes.
    def sized(string) = varint(string.bytesize) + string.b
  end
end
