# frozen_string_literal: true

require "json"
require_relative "../value"

module Sdb
  # A document as JSON, however deep and however large: JSON.generate calls itself for each level, and gives up or runs
  # out of stack where recorded recursion goes on. Here a list says what is still to be written. Strings come out as valid
  # UTF-8, with what drives a terminal or turns lines around in escapes: the same text to a program, harmless to a person.
  class JsonText
    # What was put off until what stands before it is written.
    Put = Struct.new(:text)
    UNSAFE = /[\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/
    PIECE_BYTES = 1 << 16
    private_constant :Put, :UNSAFE, :PIECE_BYTES

    # document: Value, Hash, Array, String, Symbol, Integer, Float, true, false or nil.
    #: (untyped) -> String
    def self.generate(document)
      text = String.new(encoding: Encoding::UTF_8)
      new(text).write(document)
      text
    end

    # sink: takes pieces of the text by <<.
    def initialize(sink)
      @sink = sink
      @keys = {}
      @known = {}.compare_by_identity
    end

    def write(document)
      @out = String.new(encoding: Encoding::UTF_8)
      @todo = [document]
      until @todo.empty?
        item = @todo.pop
        case item
        when Put then @out << item.text
        when Value then open_pairs(item.class.head.to_a + item.class.fields.map { |field| [field, item.public_send(field)] })
        when Hash then open_pairs(item)
        when Array then open_array(item)
        else @out << scalar(item)
        end
        flush if @out.bytesize > PIECE_BYTES
      end
      flush
    end

    private

    def flush
      @sink << @out
      @out = String.new(encoding: Encoding::UTF_8)
    end

    def open_pairs(pairs)
      return @out << flat(pairs) if pairs.none? { |_, value| nested?(value) }

      @out << "{"
      list = pairs.each_with_index.map { |(key, value), i| [Put.new("#{"," if i.positive?}#{key(key)}:"), value] }
      @todo << Put.new("}")
      list.reverse_each { |head, value| @todo << value << head }
    end

    # Frames of a stack come again and again, the very same Array: written once, then copied.
    def open_array(array)
      known = @known[array] and return @out << known
      return @out << (@known[array] = "[#{array.map { |value| frame(value) }.join(",")}]") if array.frozen? && frames?(array)

      comma = Put.new(",")
      @out << "["
      @todo << Put.new("]")
      array.reverse_each.with_index(1) { |value, i| i == array.size ? @todo << value : @todo << value << comma }
    end

    def frames?(array) = array.all? { |value| value.is_a?(Value) && value.class.fields.none? { |field| nested?(value.public_send(field)) } }

    def frame(value)
      @known[value] ||= flat(value.class.head.to_a + value.class.fields.map { |field| [field, value.public_send(field)] })
    end

    def flat(pairs) = "{#{pairs.map { |key, value| "#{key(key)}:#{scalar(value)}" }.join(",")}}"

    def nested?(value) = value.is_a?(Hash) || value.is_a?(Array) || value.is_a?(Value)

    def key(key) = @keys[key] ||= text(key.to_s)

    def scalar(value)
      case value
      when String then text(value)
      when Integer then value.to_s
      when nil then "null"
      else JSON.generate(value)
      end
    end

    def text(string)
      string = string.dup.force_encoding(Encoding::UTF_8) unless string.encoding == Encoding::UTF_8
      string = string.scrub("\uFFFD") unless string.valid_encoding?
      json = JSON.generate(string)
      json.match?(UNSAFE) ? json.gsub(UNSAFE) { |c| format("\\u%04x", c.ord) } : json
    end
  end
end
