# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "tmpdir"

# The second proof of the layout table, for the versions that cannot be run here: each version's own VM headers,
# from the development gem datadog-ruby_core_source, compiled beside the table. The first is calibration: test_layout.rb.
class TestLayoutHeaders < Minitest::Test
  GEM = "datadog-ruby_core_source"
  ROOT = File.expand_path("..", __dir__)
  FIRST_KNOWN = Gem::Version.new("3.1")
  # What must be there whatever else the gem holds: the table's versions.
  TABLE = %w[3.1 3.2 3.3 3.4 4.0].freeze

  # {"3.1.0-p0" => directory}, without the versions before the table's first
  def self.headers
    spec = Gem::Specification.find_by_name(GEM)
    dirs = Dir[File.join(spec.gem_dir, "lib/datadog/ruby_core_source/ruby-*/")]
    dirs.to_h { |dir| [File.basename(dir).delete_prefix("ruby-"), dir] }
        .select { |name, _| Gem::Version.new(name[/\A\d+\.\d+/]) >= FIRST_KNOWN }
  rescue Gem::MissingSpecError
    {}
  end

  HEADERS = headers.freeze

  def test_the_gem_holds_a_version_for_each_row_of_the_table
    need_headers
    assert_empty TABLE - HEADERS.keys.map { |name| name[/\A\d+\.\d+/] }
  end

  HEADERS.each do |name, dir|
    minor = name[/\A\d+\.\d+/]
    if TABLE.include?(minor)
      define_method("test_the_table_agrees_with_the_headers_of_#{name}") do
        rows = offsets(minor, dir)
        assert_operator rows.size, :>=, 16
        wrong = rows.reject { |_, table, vm| table == vm }
        assert_empty wrong, "field, table, #{name}"
      end
    else
      define_method("test_#{name}_has_no_row_and_what_differs_is_printed") do
        rows = offsets(minor, dir)
        last = offsets(TABLE.last, dir)
        assert(rows.first(16).all? { |_, table, _| table == "-" }, "#{minor} has a row in the table and no proof here")
        differing = last.reject { |_, table, vm| table == vm }.map { |field, table, vm| "#{field} #{table} -> #{vm}" }
        puts "\n#{name} is refused; against #{TABLE.last}: #{differing.empty? ? "all offsets are equal" : differing.join(", ")}; " \
             "#{jit_frames?(dir) ? "ZJIT keeps frames on the native stack" : "no frames on the native stack"}"
      end
    end
  end

  private

  def need_headers
    skip "the development gem #{GEM} is not installed (bundle install)" if HEADERS.empty?
  end

  # [[field, table, vm], ...]; table "-" where the table has no such version
  def offsets(minor, dir)
    Dir.mktmpdir("sdb-layout") do |tmp|
      program = File.join(tmp, "offsets")
      compile(program, dir)
      out, status = Open3.capture2(program, minor)
      assert_predicate status, :success?
      out.lines(chomp: true).map { |line| line.split("|") }
    end
  end

  def compile(program, dir)
    config = RbConfig::CONFIG
    recorder = File.join(ROOT, "ext/recorder")
    renamed = File.read(File.join(dir, "vm_core.h")).include?("*_iseq;") ? ["-DSDB_RENAMED_ISEQ"] : []
    # -w, -fpermissive: the headers are not ours. The VM's come first, for they include each other by plain names.
    command = ["cc", "-std=gnu11", "-w", "-fpermissive", *renamed, "-I#{dir}", "-I#{config["rubyhdrdir"]}", "-I#{config["rubyarchhdrdir"]}",
               "-I#{recorder}", "-I#{File.join(ROOT, "ext/format")}", "-o", program,
               File.join(__dir__, "support/layout_offsets.c"), File.join(recorder, "vm/layout_table.c")]
    out, status = Open3.capture2e(*command)
    assert_predicate status, :success?, out.lines.grep(/error/).first(5).join
  end

  def jit_frames?(dir)
    File.exist?(File.join(dir, "zjit.h")) && File.read(File.join(dir, "zjit.h")).include?("zjit_jit_frame")
  end
end
