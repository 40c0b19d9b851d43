# frozen_string_literal: true

require "rbconfig"

module Sdb
  module CLI
    # Source files as they are here and now. The log says which, and anybody may have written that: only what lies below
    # directories that the user meant is opened, whatever links lead there.
    class Sources
      MOST_BYTES = 16 << 20
      private_constant :MOST_BYTES

      # dirs: as the user named them; nil: the current directory, and this Ruby's library and gems.
      # roots: where the profiled applications lay. What was below these is looked for below `dirs`, too.
      #: (Array[String]?, ?roots: Array[String], ?cwd: String) -> void
      def initialize(dirs, roots: [], cwd: Dir.pwd)
        @dirs = (dirs || [cwd, *Gem.path, RbConfig::CONFIG["rubylibdir"]]).filter_map { |dir| real(dir) } - ["/"]
        @copies = dirs ? @dirs : []
        @roots = roots.map { |root| "#{root.chomp("/")}/" }
      end

      # @return its lines, none where it is not here or may not be shown
      #: (String) -> Array[String]
      def lines(path)
        candidates(path).each do |candidate|
          file = real(candidate)
          next unless file && @dirs.any? { |dir| file.start_with?("#{dir}/") }
          return File.readlines(file) if File.file?(file) && File.size(file) < MOST_BYTES
        end
        []
      rescue SystemCallError
        []
      end

      private

      def candidates(path)
        root = @roots.find { |dir| path.start_with?(dir) }
        copies = root ? @copies.map { |dir| File.join(dir, path.delete_prefix(root)) } : []
        [*copies, path]
      end

      def real(path)
        File.realpath(path)
      rescue SystemCallError, ArgumentError
        nil
      end
    end
  end
end
