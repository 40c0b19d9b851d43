# frozen_string_literal: true

require "json"
require "tmpdir"
require "zlib"
$LOAD_PATH.unshift File.expand_path("../../lib", __dir__)
require "sdb/open"

# The golden files and what is asked of each.
module Golden
  DIR = __dir__

  module_function

  def logs = Dir[File.join(DIR, "{good,bad}", "*.sdb.gz")].sort

  # The answers to every kind of question as plain JSON values.
  def ask(gzipped)
    Dir.mktmpdir("sdb-golden") do |dir|
      path = File.join(dir, File.basename(gzipped, ".gz"))
      File.binwrite(path, Zlib::GzipReader.open(gzipped, &:read))
      JSON.parse(JSON.generate(answers(path)).gsub(dir, "DIR"))
    end
  end

  def answers(path)
    profile = Sdb::Profile.new([path])
    {
      warnings: profile.warnings, entry: profile.rings.first.entry.to_h, status: profile.rings.first.status.to_h,
      functions: profile.functions.to_h, cpu: profile.functions(metric: :cpu).to_h, threads: profile.threads.to_h,
      collapsed: profile.collapsed(lines: true).lines.map(&:chomp), spans: profile.slow.to_h, stacks: profile.stacks.to_h,
      gaps: profile.gaps.map(&:to_h), gc: profile.gc_runs.map(&:to_h), memory: profile.memory.map(&:to_h),
      marks: profile.marks.map(&:to_h), pre_ooms: profile.pre_ooms.map(&:to_h)
    }
  rescue Sdb::Error => e
    { error: "#{e.class}: #{e.message}" }
  end
end
