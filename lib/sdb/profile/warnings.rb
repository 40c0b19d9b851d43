# frozen_string_literal: true

module Sdb
  class Profile
    # What reading the logs found missing or damaged in them, as lines for people. The same fault of more than a few
    # logs is one line: a cluster of forty workers has one disk, and one story to tell.
    class Warnings
      EACH = 3
      FAULTS = {
        chunks_missing: ["chunk is missing in the middle", "chunks are missing in the middle"],
        chunks_lapped: ["chunk was overwritten while it was read", "chunks were overwritten while they were read"],
        chunks_damaged: ["chunk is damaged and was read in part", "chunks are damaged and were read in part"],
        records_ignored: ["record was invalid and left out", "records were invalid and left out"]
      }.freeze
      private_constant :FAULTS

      # rings: Array of Ring. rows: for each of them what the native profile counted.
      def initialize(rings, rows)
        @rings = rings
        @rows = rows
      end

      #: () -> Array[String]
      def lines
        FAULTS.flat_map { |fault, words| told(counted(fault), ->(n) { "#{n} #{words[n == 1 ? 0 : 1]}" }) } +
          told(counted(:unknown_ns).reject { |_, ns| ns < 1_000_000 }, method(:unknown)) +
          told(@rings.select(&:truncated?).to_h { |ring| [ring, 1] }, ->(_) { "the file is shorter than it says: truncated" })
      end

      private

      #: (Symbol) -> Hash[Ring, Integer]
      def counted(name)
        @rings.zip(@rows).to_h { |ring, row| [ring, row[name]] }.select { |_, n| n.positive? }
      end

      def unknown(nanoseconds)
        format("%.1f ms of its threads' time is unknown: blocks were lost", nanoseconds / 1e6)
      end

      def told(found, words)
        return found.map { |ring, n| "#{File.basename(ring.path)}: #{words.call(n)}" } if found.size <= EACH

        names = found.keys.first(EACH).map { |ring| File.basename(ring.path) }
        ["#{found.size} logs (#{names.join(", ")} ...): #{words.call(found.values.sum)}"]
      end
    end
  end
end
