# frozen_string_literal: true

require_relative "rings"

module Sdb
  module CLI
    # Saves a copy of a ring as it is now.
    class Dump < Rings
      summary "save a copy of a process's log as it is now"
      usage "[options] [PID | RING]"
      examples "sdb dump 4242              # to <service>-4242-<time>.sdbdump in this directory",
               "sdb dump 4242 -o slow.sdb  # to this file"

      BLOCK = 64 << 10

      private

      def define(parser)
        super
        parser.on("-o", "--output FILE", "write to FILE, replacing it if it exists") { |v| @output = v }
      end

      def run(arguments)
        take(arguments, 0..1, "PID")
        ring = one_ring(arguments)
        path = @output || default_name(ring)
        bytes = copy(ring.path, path)
        return print_json({ schema: 1, path: File.expand_path(path), pid: ring.pid, bytes: bytes }) || 0 if json?

        out.puts path
        0
      end

      def default_name(ring)
        service = (ring.text["service"] || "ruby").gsub(/[^A-Za-z0-9._-]/, "_")[0, 60]
        "#{service}-#{ring.pid}-#{Time.now.strftime("%Y%m%d-%H%M%S")}.sdbdump"
      end

      # Front to back: the writer goes on meanwhile, and what it overtakes shows as such by its checksums. Holes
      # stay holes. Under the final name only when whole.
      def copy(from, path)
        temporary = "#{path}.#{Process.pid}.part"
        written = File.open(from, "rb") do |source|
          File.open(temporary, File::WRONLY | File::CREAT | File::EXCL | File::BINARY, 0o600) do |target|
            copy_blocks(source, target)
          end
        end
        File.rename(temporary, path)
        written
      ensure
        File.unlink(temporary) if temporary && File.exist?(temporary)
      end

      def copy_blocks(source, target)
        while (block = source.read(BLOCK))
          block.count("\0") == block.bytesize ? target.seek(block.bytesize, IO::SEEK_CUR) : target.write(block)
        end
        target.truncate(source.pos)
        target.fsync
        source.pos
      end
    end
  end
end
