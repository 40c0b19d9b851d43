# frozen_string_literal: true

require "json"
require "stringio"
require "tmpdir"
require "sdb/cli"
require "support/ring_encoder"

# Runs commands in this process with their output in strings.
module CLIHelper
  Answer = Struct.new(:status, :out, :err) do
    def json = JSON.parse(out)
  end

  # A StringIO that says it is a terminal of that size.
  class FakeTerminal < StringIO
    def initialize(columns, rows = 24)
      super()
      @size = [rows, columns]
    end

    def tty? = true
    def winsize = @size
  end

  def sdb(*arguments, out: StringIO.new, err: StringIO.new)
    status = Sdb::CLI.run(arguments.map(&:to_s), out: out, err: err)
    Answer.new(status, out.string, err.string)
  end

  # As sdb, but must have answered.
  def sdb!(*arguments, **options)
    answer = sdb(*arguments, **options)
    assert_equal 0, answer.status, "sdb #{arguments.join(" ")}: #{answer.err}"
    answer
  end

  def with_env(values)
    old = values.keys.to_h { |key| [key, ENV.fetch(key, nil)] }
    values.each { |key, value| ENV[key] = value }
    yield
  ensure
    old&.each { |key, value| ENV[key] = value }
  end
end
