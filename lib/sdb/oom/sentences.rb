# frozen_string_literal: true

require_relative "../shared/text"

module Sdb
  module Oom
    # How a process died, in sentences for people: what the terminal and the page both say.
    class Sentences
      #: (Death) -> Array[String]
      def self.of(death) = new(death).lines

      def initialize(death)
        @death = death
      end

      #: () -> Array[String]
      def lines
        [headline, *kill_words, *hints, *flag_words].compact
      end

      private

      attr_reader :death

      def headline
        who = [death.service, "pid #{death.pid}"].compact.join(", ")
        what = { "oom" => "was killed by the kernel's OOM killer", "sigkill" => "was killed by SIGKILL" }
               .fetch(death.cause) { death.ring&.state == "stopped" ? "ended normally" : "vanished: killed or crashed" }
        "#{who} #{what} at #{Text.clock(death.at)}"
      end

      def kill_words
        return [] unless death.dump

        kill = death.kill
        sender = "#{kill[:sender_comm]} (pid #{kill[:sender_pid]}, uid #{kill[:sender_uid]})"
        own = kill[:sender_pid] == death.dump.number(:pid)
        lines = [if death.cause == "oom"
                   "the allocation that failed was made by #{own ? "the process itself" : sender}"
                 else
                   "sent by #{sender}"
                 end]
        if kill[:anon_rss_bytes].positive?
          lines << "in memory: #{Text.bytes(kill[:anon_rss_bytes])} anonymous, #{Text.bytes(kill[:file_rss_bytes])} of files, " \
                   "#{Text.bytes(kill[:shmem_rss_bytes])} shared"
        end
        if kill[:cgroup_limit_bytes].positive?
          lines << "cgroup #{kill[:cgroup]}: limit #{Text.bytes(kill[:cgroup_limit_bytes])}, peak " \
                   "#{Text.bytes(kill[:cgroup_peak_bytes])}"
        end
        lines << "command: #{kill[:cmdline]}" unless kill[:cmdline].to_s.empty?
        lines
      end

      # Without a dump the log may still tell what is likely.
      def hints
        return [] if death.cause == "oom" || death.pre_ooms.empty?

        ["its memory had come close to the limit, so the OOM killer is likely"]
      end

      def flag_words
        words = { slot_overflow: "too many processes died at once: no stacks were copied", layout_unknown: "its recorder has another version: no stacks were copied",
                  unarmed: "it had not registered with sdb-oomd: the stacks are the last ones sampled", events_lost: "parts of the capture were lost",
                  truncated_threads: "not all threads could be copied", head_stale: "the last milliseconds before the kill are missing",
                  ring_missing: "the log was cut short", not_a_ring: "what it registered was not a log",
                  not_ended: "it was still running when this was written" }
        death.flags.filter_map { |name, value| "! #{words[name]}" if words[name] && value.positive? }
      end
    end
  end
end
