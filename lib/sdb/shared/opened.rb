# frozen_string_literal: true

module Sdb
  # Files that were opened while we still might, by their path: who gives up its privileges before it reads what others wrote
  # (CLI::Unprivileged) finds them here. Without any, opening is opening.
  module Opened
    # Dump, log.
    MAGICS = ["SDDMP\xb1\xc2\xa7".b, "SDB\nb\xb1\xc2\xa7".b].freeze

    @files = {}

    class << self
      # Keeps it open when it is ours by its first bytes: nothing else gets into the hands of who has no right to it.
      # given: by the user himself, who may mean a link.
      #: (String, given: bool) -> void
      def add(path, given:)
        file = File.open(path, File::RDONLY | File::NONBLOCK | File::NOCTTY | (given ? 0 : File::NOFOLLOW))
        if file.stat.file? && MAGICS.include?(file.pread(8, 0))
          file.binmode
          return @files[File.expand_path(path)] = file
        end
        file.close
      rescue SystemCallError, EOFError
        file&.close # whoever reads it will say so
      end

      def clear
        @files.each_value(&:close)
        @files.clear
      end

      #: (String) -> File?
      def [](path) = @files[File.expand_path(path)]

      # Yields the file from its beginning.
      def open(path, &)
        file = self[path] or return File.open(path, "rb", &)
        file.rewind
        yield file
      end

      def file?(path) = self[path] ? true : File.file?(path)
    end
  end
  private_constant :Opened
end
