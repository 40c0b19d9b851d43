# frozen_string_literal: true

module Sdb
  # Numbers and names as people read them.
  module Text
    # Control characters, line separators, marks that turn text around, and spaces and tags that nobody sees.
    UNSEEN = /[\p{Cc}\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/
    private_constant :UNSEEN

    module_function

    # 1234 -> "1.23 us", 90_000_000_000 -> "1m 30s"
    #: (Integer?) -> String
    def duration(nanoseconds)
      return "-" if nanoseconds.nil?
      return "-#{duration(-nanoseconds)}" if nanoseconds.negative?
      return "0" if nanoseconds.zero?
      return "#{nanoseconds} ns" if nanoseconds < 1000
      return long_duration(nanoseconds / 1_000_000_000) if nanoseconds >= 120_000_000_000

      unit, size = [["s", 1e9], ["ms", 1e6], ["us", 0.0]].find { |_, s| nanoseconds >= s * 0.9995 }
      size = 1e3 if unit == "us"
      "#{significant(nanoseconds / size.to_f)} #{unit}"
    end

    def long_duration(seconds)
      days, seconds = seconds.divmod(86_400)
      hours, seconds = seconds.divmod(3600)
      minutes, seconds = seconds.divmod(60)
      parts = [[days, "d"], [hours, "h"], [minutes, "m"], [seconds, "s"]].drop_while { |n, _| n.zero? }
      parts.first(2).map { |n, unit| "#{n}#{unit}" }.join(" ")
    end

    # Three figures: 1.23, 12.3, 123
    def significant(value)
      return value.round.to_s if value >= 99.95

      format(value >= 9.995 ? "%.1f" : "%.2f", value)
    end

    #: (Numeric, Numeric) -> String
    def percent(part, whole)
      whole.zero? ? "-" : format("%.1f%%", 100.0 * part / whole)
    end

    #: (Integer?) -> String
    def bytes(count)
      return "-" if count.nil?

      unit, shift = [["GiB", 30], ["MiB", 20], ["KiB", 10]].find { |_, s| count >= 1 << s } || ["B", 0]
      shift.zero? ? "#{count} B" : "#{significant(count / (1 << shift).to_f)} #{unit}"
    end

    # 12345 -> "12,345"
    #: (Integer?) -> String
    def count(number)
      number.nil? ? "-" : number.to_s.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ",")
    end

    # Names and paths come from the profiled program: they may hold bytes that are no text and sequences
    # that drive a terminal. Neither gets out.
    #: (untyped) -> String
    def clean(text)
      text = text.to_s
      text = text.dup.force_encoding(Encoding::UTF_8) unless text.encoding == Encoding::UTF_8
      text = text.scrub("\uFFFD") unless text.valid_encoding?
      text.match?(UNSEEN) ? text.gsub(UNSEEN) { |c| c.dump[1..-2] } : text
    end

    # 1, "thread" -> "1 thread"; 2 -> "2 threads"
    #: (Integer, String) -> String
    def plural(number, noun)
      "#{count(number)} #{noun}#{"s" unless number == 1}"
    end

    # "/app/foo.rb:12", or "" for code without a file.
    #: (String?, Integer?) -> String
    def place(path, line)
      return "" if path.nil? || path.empty?

      line.to_i.positive? ? "#{clean(path)}:#{line}" : clean(path)
    end

    # What a process is called: its service, else "ruby script.rb" of its command line; and which worker it is.
    #: (Ring) -> String
    def program(ring)
      worker = ring.tags["worker"]
      [ring.text["service"] ? clean(ring.text["service"]) : command(ring.argv), worker && "worker #{clean(worker)}"].compact.join(" ")
    end

    #: (Array[String]) -> String
    def command(argv)
      return "ruby" if argv.empty? # left out, with SDB_ARGV=0

      command, *arguments = argv
      words = [command, arguments.find { |argument| argument == "-e" || !argument.start_with?("-") }].compact
      clean(words.map { |word| word.start_with?("/") ? File.basename(word) : word }.join(" "))
    end

    # RFC 3339 -> local "2026-08-01 14:05:10"
    #: (String?) -> String
    def clock(instant)
      return "-" if instant.nil?

      require "time"
      Time.iso8601(instant).getlocal.strftime("%Y-%m-%d %H:%M:%S")
    rescue ArgumentError
      instant
    end
  end
end
