# frozen_string_literal: true

require "json"
require_relative "../errors"
require_relative "output"

module Sdb
  module CLI
    # Root reads what others wrote, and a log may be made to hurt who reads it: so a child without privileges does it. It has the
    # files that were opened before, and pipes for what it prints; what comes through these is text, never a program.
    module Unprivileged
      NOBODY = 65_534
      ERRORS = %w[Error FormatError NoRingError UnsupportedError].freeze
      private_constant :NOBODY, :ERRORS

      module_function

      def needed? = Process.euid.zero? && Process.respond_to?(:fork)

      # As many files as the system lets us have.
      def raise_limit
        _, hard = Process.getrlimit(:NOFILE)
        Process.setrlimit(:NOFILE, [hard, 65_536].min, hard)
      rescue SystemCallError
        nil # then fewer
      end

      # The block gets (out, err) for what it prints, and answers with the exit status. Raises what it raised, of our errors.
      #: (Output, Output) { (Output, Output) -> Integer } -> Integer
      def run(out, err)
        pipes = Array.new(3) { IO.pipe }
        pipes.flatten.each(&:binmode)
        pid = fork { child(pipes) { |*outputs| yield(*outputs) } }
        pipes.each { |_, writer| writer.close }
        copies = [out, err].zip(pipes).map { |to, (from, _)| Thread.new { copy(from, to) } }
        said = pipes.last.first.read
        copies.each(&:join)
        settle(pid, said)
      rescue Interrupt
        Process.kill(:KILL, pid) if pid
        raise
      ensure
        pipes&.flatten&.each(&:close)
      end

      def child(pipes)
        pipes.each { |reader, _| reader.close }
        out, err, answer = pipes.map(&:last)
        give_up
        status = yield(Output.wrap(out), Output.wrap(err))
        answer.write(JSON.generate({ status: status }))
      rescue Error => e
        answer.write(JSON.generate({ error: e.class.name.delete_prefix("Sdb::"), words: e.message.scrub }))
      rescue SystemCallError, LoadError, NoMemoryError => e
        answer.write(JSON.generate({ error: "Error", words: e.message.scrub }))
      ensure
        [out, err, answer].each { |io| io&.close }
        exit!(0)
      end

      def give_up
        Process.groups = []
        Process::Sys.setresgid(NOBODY, NOBODY, NOBODY)
        Process::Sys.setresuid(NOBODY, NOBODY, NOBODY)
        raise Error, "root's privileges could not be given up" if Process.uid != NOBODY || Process.euid != NOBODY
      end

      def copy(from, to)
        while (bytes = from.readpartial(1 << 16))
          to.raw(bytes.force_encoding(Encoding::UTF_8))
        end
      rescue EOFError
        nil
      end

      def settle(pid, said)
        _, status = Process.wait2(pid)
        answer = said.empty? ? nil : JSON.parse(said)
        raise Error, "reading it ended badly (#{status.to_s.sub(/\Apid \d+ /, "")})" if answer.nil?
        return Integer(answer["status"]) if answer["status"]

        raise Sdb.const_get(ERRORS.include?(answer["error"]) ? answer["error"] : "Error"), answer["words"].to_s
      end
      private_class_method :child, :give_up, :copy, :settle
    end
  end
end
