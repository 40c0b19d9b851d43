# frozen_string_literal: true

require_relative "test_helper"
require_relative "../rakelib/named_code"
require "tmpdir"

# What comments and documents call by name exists; and the walks of ext/README.md lead somewhere.
class TestNamedCode < Minitest::Test
  NAMED = NamedCode.new
  README = File.read(File.expand_path("../ext/README.md", __dir__))

  def test_no_comment_and_no_document_names_what_is_gone
    assert_empty NAMED.stale
  end

  { "One tick, from the timer to `pwrite`" => 8, "One span, from Rack to `sdb slow`" => 6,
    "One name, from an address to an answer" => 6 }.each do |title, least|
    define_method("test_each_step_of_the_walk_#{title.downcase.gsub(/\W+/, "_")}_exists") do
      steps = README[/^### #{Regexp.escape(title)}\n(.*?)(?=^### |\z)/m, 1].scan(/^\d+\. .*?(?=^\d+\. |\z)/m)
      assert_operator steps.size, :>=, least
      steps.each do |step|
        names = step.scan(%r{`([\w/]+\.(?:c|rb)):(\w+)`})
        assert(names.any? || step.include?("`profile/decoder.c`"), "no file:function in #{step}")
        assert_empty(names.reject { |file, name| NAMED.exist?(file, name) }.map { |place| place.join(":") })
      end
    end
  end

  def test_a_name_that_is_gone_is_found
    Dir.mktmpdir do |dir|
      %w[ext/format ext/recorder/core].each { |folder| FileUtils.mkdir_p(File.join(dir, folder)) }
      File.write(File.join(dir, "ext/format/ring_format.h"), "#define SDB_COUNTERS(X) \\\n    X(TICKS, ticks)\n")
      File.write(File.join(dir, "ext/recorder/core/a.h"), <<~C)
        /* As a.h:sdb_a and core/a.h say, SDB_C_TICKS, and as _run does. Not: core/b.h, a.h:sdb_b, sdb_c, or _walk */
        void sdb_a_run(int sdb_a);
      C
      assert_equal ["a.h has no sdb_b", "there is no core/b.h", "nothing is called sdb_b", "nothing is called sdb_c",
                    "no name ends with _walk"], NamedCode.new(dir).stale.map { |line| line.split(": ", 2).last }
    end
  end
end
