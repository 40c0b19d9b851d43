# frozen_string_literal: true

module Sdb
  # How people write times, sizes and tags, in SDB_* variables and on the command line alike.
  # Each raises ArgumentError when the text is none.
  module Units
    NS = {
      "ns" => 1, "us" => 1_000, "µs" => 1_000, "ms" => 1_000_000, "s" => 1_000_000_000, "" => 1_000_000_000,
      "m" => 60_000_000_000, "min" => 60_000_000_000, "h" => 3_600_000_000_000, "d" => 86_400_000_000_000
    }.freeze
    BYTES = { "" => 0, "k" => 10, "m" => 20, "g" => 30 }.freeze

    module_function

    # "300ms" "1.5s" "10m" "1h30m" "0.001" (seconds) -> Integer ns
    #: (String) -> Integer
    def duration_ns(text)
      text = text.strip
      raise ArgumentError, "not a time: #{text}" unless text.match?(/\A(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|min|m|h|d)?)+\z/)

      parts = text.scan(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|min|m|h|d)?/)
      raise ArgumentError, "not a time: #{text}" if parts.size > 1 && parts.any? { |_, unit| unit.nil? }

      parts.sum { |number, unit| (Rational(number) * NS.fetch(unit.to_s)).round }
    end

    # "67108864" "64M" "64MiB" "1g" -> Integer
    #: (String) -> Integer
    def bytes(text)
      match = text.strip.match(/\A(\d+(?:\.\d+)?)\s*([kmg]?)(?:i?b)?\z/i) or
        raise ArgumentError, "not a size: #{text}"
      (Rational(match[1]) * (1 << BYTES.fetch(match[2].downcase))).to_i
    end

    # "0.05" "5%" -> Float
    #: (String) -> Float
    def fraction(text)
      text = text.strip
      text.end_with?("%") ? Float(text.delete_suffix("%")) / 100 : Float(text)
    end

    # "k=v,k2=v2" -> Hash
    #: (String) -> Hash[String, String]
    def tags(text)
      text.split(",").to_h do |pair|
        key, value = pair.split("=", 2)
        raise ArgumentError, "not k=v: #{pair}" if value.nil? || key.strip.empty?

        [key.strip, value.strip]
      end
    end
  end
end
