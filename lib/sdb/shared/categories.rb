# frozen_string_literal: true

module Sdb
  # Whose code a function is, told by its path: :app, :gem, :stdlib, :c, :eval or :internal.
  class Categories
    GEM = %r{(?:\A|/)(?:gems|bundler/gems|vendor/bundle|vendor_ruby|site_ruby)/}
    STDLIB = %r{/lib(?:64)?/ruby/|\A<internal:}
    # sdb's own middleware, where it does not lie among the gems.
    OWN = %r{/lib/sdb(?:/|\.rb)}
    private_constant :GEM, :STDLIB, :OWN

    # roots: directories of the profiled applications, in which "gems" or "lib/ruby" may well be their own.
    # What is neither a gem's nor Ruby's own is the app's, wherever it lies: engines and scripts beside it too.
    #: (Array[String]) -> void
    def initialize(roots)
      @roots = roots.compact.reject(&:empty?).map { |root| root.end_with?("/") ? root : "#{root}/" }.uniq
      @roots.delete("/")
    end

    #: (String name, String? path) -> Symbol
    def of(name, path)
      return name.start_with?("(") ? :internal : :c if path.nil? || path.empty? || path == "<cfunc>"
      return :eval if path.start_with?("(eval")

      root = @roots.find { |dir| path.start_with?(dir) }
      inner = root ? path.delete_prefix(root) : path
      return :gem if inner.match?(GEM) || (path.match?(OWN) && name.include?("Sdb"))

      inner.match?(STDLIB) ? :stdlib : :app
    end

    # What --only-app keeps: the app's own code, and what stands for unknown or unnamed frames, which may be that.
    #: (String name, String? path) -> bool
    def kept?(name, path)
      %i[app internal].include?(of(name, path))
    end
  end
end
