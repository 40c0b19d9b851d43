# frozen_string_literal: true

require_relative "../shared/text"

module Sdb
  module CLI
    # What recorders say they did not see, in words.
    module Losses
      WORDS = {
        torn: ["%s stack that moved while it was read", "%s stacks that moved while they were read"],
        torn_top: ["the newest frames of %s stack", "the newest frames of %s stacks"],
        gc: ["%s stack during GC", "%s stacks during GC"],
        unresolved: ["%s name", "%s names"],
        queue_full: ["%s event of spans and tags", "%s events of spans and tags"],
        ring: ["%s block not written", "%s blocks not written"]
      }.freeze
      # From these shares on, or for any of the others, the figures are to be doubted; as on the pages.
      SCANS_DOUBT = 0.005
      TIME_DOUBT = 0.01
      private_constant :WORDS

      module_function

      # lost: as in the status document. nil when nothing was.
      #: (Hash[Symbol, Integer]?) -> String?
      def words(lost)
        found = lost.to_h.select { |_, n| n.to_i.positive? }.map do |name, n|
          next "#{Text.duration(n)} not observed" if name == :gap_ns

          one, many = WORDS.fetch(name) { ["%s #{name}", "%s #{name}"] }
          format(n == 1 ? one : many, Text.count(n))
        end
        found.join(", ") unless found.empty?
      end

      #: (Profile) -> bool
      def doubtful?(profile)
        lost = profile.lost
        scans = profile.rings.sum { |ring| ring.counters[:scans].to_i }
        lost[:queue_full].to_i.positive? || lost[:ring].to_i.positive? ||
          lost[:gap_ns].to_i > profile.duration_ns * TIME_DOUBT ||
          [lost[:torn].to_i, lost[:torn_top].to_i].max > scans * SCANS_DOUBT
      end
    end
  end
end
