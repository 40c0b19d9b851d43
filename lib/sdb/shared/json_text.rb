# frozen_string_literal: true

require "json"

module Sdb
  # A document as JSON, however deep: JSON.generate calls itself for each level and gives up, or runs out of stack,
  # where recorded recursion goes on. Strings come out as valid UTF-8, with what drives a terminal or turns lines
  # around in escapes: the same text to a program, harmless to a person.
  module JsonText
    # What was put off until what stands before it is written.
    Put = Struct.new(:text)
    UNSAFE = /[\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/
    private_constant :Put, :UNSAFE

    module_function

    # document: Hash, Array, String, Symbol, Integer, Float, true, false or nil.
    #: (untyped) -> String
    def generate(document)
      out = String.new(encoding: Encoding::UTF_8)
      todo = [document]
      until todo.empty?
        item = todo.pop
        case item
        when Put then out << item.text
        when Hash then open_hash(item, todo, out)
        when Array then open_array(item, todo, out)
        else out << scalar(item)
        end
      end
      out.gsub(UNSAFE) { |c| format("\\u%04x", c.ord) }
    end

    def open_hash(hash, todo, out)
      flat = hash.each_value.none? { |value| value.is_a?(Hash) || value.is_a?(Array) }
      return out << "{" << hash.map { |key, value| "#{key(key)}:#{scalar(value)}" }.join(",") << "}" if flat

      out << "{"
      pairs = hash.each_with_index.map { |(key, value), i| [Put.new("#{"," if i.positive?}#{key(key)}:"), value] }
      todo << Put.new("}")
      pairs.reverse_each { |head, value| todo << value << head }
    end

    def open_array(array, todo, out)
      comma = Put.new(",")
      out << "["
      todo << Put.new("]")
      array.reverse_each.with_index(1) { |value, i| i == array.size ? todo << value : todo << value << comma }
    end

    def key(key) = JSON.generate(utf8(key.to_s))

    def scalar(value) = JSON.generate(value.is_a?(String) ? utf8(value) : value)

    def utf8(text)
      text = text.dup.force_encoding(Encoding::UTF_8) unless text.encoding == Encoding::UTF_8
      text.valid_encoding? ? text : text.scrub("\uFFFD")
    end
    private_class_method :open_hash, :open_array, :key, :scalar, :utf8
  end
end
