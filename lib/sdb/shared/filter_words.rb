# frozen_string_literal: true

require_relative "text"

module Sdb
  # What was asked for, in the words of the flags: every answer and picture says which part of the logs it is about.
  module FilterWords
    module_function

    # filters: as every question to a profile takes them (times in ns).
    # @return one String a filter: "last 10.0 s", "endpoint UsersController#index", "focus /user/"
    #: (Hash[Symbol, untyped]) -> Array[String]
    def of(filters)
      filters.reject { |_, value| value.nil? || value == false }.map do |name, value|
        word = name.to_s.tr("_", "-")
        value == true ? word : "#{word} #{list(value).map { |v| shown(name, v) }.join(",")}"
      end
    end

    def list(value) = value.is_a?(Hash) ? value.map { |pair| pair.join("=") } : Array(value)

    def shown(name, value)
      case value
      when Regexp then "/#{value.source}/"
      when Time then value.strftime("%Y-%m-%d %H:%M:%S %Z")
      when Numeric then name == :percentile ? format("%g", value) : "#{"-" if value.negative?}#{Text.duration(value.abs)}"
      else value.to_s
      end
    end
    private_class_method :list, :shown
  end
end
