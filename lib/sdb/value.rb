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
    def to_h
      self.class.fields.to_h { |field| [field, Value.plain(public_send(field))] }
    end

    def ==(other)
      other.class == self.class && other.to_h == to_h
    end
    alias eql? ==

    def hash
      to_h.hash
    end

    # Hashes, Arrays and scalars all the way down.
    def self.plain(value)
      case value
      when Value then value.to_h
      when Array then value.map { |v| plain(v) }
      else value
      end
    end
  end

  # A whole document: its to_h starts with the schema number.
  class Document < Value
    SCHEMA = 1

    def to_h
      { schema: SCHEMA }.merge(super)
    end
  end
end
