# frozen_string_literal: true

module Sdb
  # Base of the frozen value objects that questions are answered with: keyword constructor, readers, equality
  # by value, and a to_h that is the JSON document of CLI.md with symbol keys (nested values included).
  #
  #   class Line < Value.of(:line, :self_ns, :total_ns); end
  class Value
    class << self
      # The fields, in the order of the document.
      attr_reader :fields

      #: (*Symbol) -> Class
      def of(*fields)
        Class.new(self) do
          @fields = fields.freeze
          attr_reader(*fields)
        end
      end

      def inherited(child)
        super
        child.instance_variable_set(:@fields, @fields)
      end
    end

    # Fields not given are nil; unknown ones raise ArgumentError.
    def initialize(**values)
      unknown = values.keys - self.class.fields
      raise ArgumentError, "unknown fields #{unknown.join(", ")}" unless unknown.empty?

      self.class.fields.each do |field|
        value = values[field]
        instance_variable_set(:"@#{field}", value.is_a?(Array) || value.is_a?(Hash) ? value.freeze : value)
      end
      freeze
    end

    #: () -> Hash[Symbol, untyped]
    def to_h = Value.plain(self)

    # What a value's Hash begins with.
    def self.head = {}

    def ==(other)
      other.class == self.class && other.to_h == to_h
    end
    alias eql? ==

    def hash
      to_h.hash
    end

    # Hashes, Arrays and scalars all the way down, without recursion: a call tree is as deep as what was recorded.
    def self.plain(root)
      made = [root]
      todo = [[made, 0]]
      until todo.empty?
        into, key = todo.pop
        into[key] = copy = plain_copy(into[key])
        copy.each_pair { |field, value| todo << [copy, field] if nested?(value) } if copy.is_a?(Hash)
        copy.each_index { |i| todo << [copy, i] if nested?(copy[i]) } if copy.is_a?(Array)
      end
      made.first
    end

    def self.plain_copy(value)
      return value.dup if value.is_a?(Array)
      return value unless value.is_a?(Value)

      value.class.fields.each_with_object(value.class.head) { |field, copy| copy[field] = value.public_send(field) }
    end

    def self.nested?(value) = value.is_a?(Value) || value.is_a?(Array)
    private_class_method :plain_copy, :nested?
  end

  # A whole document: its to_h starts with the schema number.
  class Document < Value
    SCHEMA = 1

    def self.head = { schema: SCHEMA }
  end
end
