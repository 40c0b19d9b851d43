# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# coverage.rb - what gcov counted in the folders of the recorder while the C tests ran, as a table.

require "json"
require "open3"

module Coverage
  Row = Struct.new(:name, :lines, :lines_reached, :branches, :branches_taken) do
    def +(other) = Row.new(name, lines + other.lines, lines_reached + other.lines_reached, branches + other.branches, branches_taken + other.branches_taken)
  end

  module_function

  # dir: where the objects and their counts lie, a folder a layer. least: layer => percent of its lines.
  # @return whether each layer reaches what is asked of it
  #: (String, Hash[String, Integer]) -> bool
  def report(dir, least, out: $stdout)
    verdicts = least.map do |layer, percent|
      rows = Dir.chdir(dir) { Dir["#{layer}/*.gcda"].sort.filter_map { |file| row(layer, file) } }
      total = rows.inject(Row.new("#{layer}/", 0, 0, 0, 0), :+)
      [*rows, total].each { |r| out.puts(line(r)) }
      out.puts
      total.lines_reached * 100 >= percent * total.lines
    end
    passed = verdicts.count(true)
    out.puts("#{passed} passed, #{verdicts.size - passed} failed, 0 skipped")
    verdicts.all?
  end

  def row(layer, file)
    output, status = Open3.capture2("gcov", "--json-format", "--branch-probabilities", "--stdout", file, err: File::NULL)
    raise "gcov failed on #{file}" unless status.success?

    source = "/#{layer}/#{File.basename(file, ".gcda")}.c"
    counted = JSON.parse(output.lines.first).fetch("files").find { |f| f["file"].end_with?(source) } or return
    lines = counted.fetch("lines").group_by { |l| l["line_number"] }.values
    branches = counted.fetch("lines").flat_map { |l| l["branches"] }
    Row.new(File.basename(source), lines.size, lines.count { |same| same.any? { |l| l["count"].positive? } },
            branches.size, branches.count { |b| b["count"].positive? })
  end

  def line(row)
    format("%-22s lines %5d  %5.1f %%   branches %5d  %5.1f %%", row.name, row.lines, share(row.lines_reached, row.lines),
           row.branches, share(row.branches_taken, row.branches))
  end

  def share(part, whole) = whole.zero? ? 100.0 : 100.0 * part / whole
end
