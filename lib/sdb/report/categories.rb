# frozen_string_literal: true

module Sdb
  module Report
    # Whose code a function is, told by its path: :app, :gem, :stdlib, :c, :eval or :internal.
    class Categories
      GEM = %r{(?:\A|/)(?:gems|bundler/gems|vendor/bundle|vendor_ruby|site_ruby)/}
      STDLIB = %r{/lib(?:64)?/ruby/\d+\.\d+(?:\.\d+)?/|\A<internal:}
      private_constant :GEM, :STDLIB

      # roots: directories of the profiled applications; with none, everything that is neither a gem's nor
      # Ruby's own counts as the app's.
      #: (Array[String]) -> void
      def initialize(roots)
        @roots = roots.compact.reject(&:empty?).map { |root| root.end_with?("/") ? root : "#{root}/" }.uniq
        @roots.delete("/")
      end

      #: (String name, String? path) -> Symbol
      def of(name, path)
        return name.start_with?("(") ? :internal : :c if path.nil? || path.empty?
        return :eval if path.start_with?("(eval")

        root = @roots.find { |dir| path.start_with?(dir) }
        inner = root ? path.delete_prefix(root) : path
        return :gem if inner.match?(GEM)
        return :stdlib if inner.match?(STDLIB)

        root || @roots.empty? || !path.start_with?("/") ? :app : :gem
      end
    end
  end
end
