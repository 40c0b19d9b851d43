# frozen_string_literal: true

require "sdb/open"
require "tmpdir"
require "support/ring_encoder"

# Rings told as stories (see RingEncoder::Story) and opened as profiles.
module ProfileHelper
  MS = 1_000_000

  CODES = proc do
    code :main, "<main>", path: "/app/main.rb", line: 1
    code :work, "Foo#work", path: "/app/foo.rb", line: 10
    code :other, "Bar.other", path: "/app/bar.rb", line: 20
    code :gem, "Gem#call", path: "/usr/lib/ruby/gems/x/lib/x.rb", line: 5
    code :sleep, "Kernel#sleep"
  end

  def setup
    super
    @dir = Dir.mktmpdir("sdb-profile")
  end

  def teardown
    FileUtils.rm_rf(@dir)
    super
  end

  # Path of a ring with the codes above.
  def ring(name = "a.sdb", **options, &story)
    path = File.join(@dir, name)
    RingEncoder.write(path, **options) do
      instance_eval(&CODES)
      instance_eval(&story)
    end
  end

  def profile(...)
    Sdb::Profile.new([ring(...)])
  end

  # { "Foo#work" => self ms }
  def self_ms(profile, **filters)
    profile.functions(**filters).functions.reject { |f| f.self_ns.zero? }.to_h { |f| [f.name, f.self_ns / MS.to_f] }
  end

  def total_ms(profile, **filters)
    profile.functions(**filters).functions.to_h { |f| [f.name, f.total_ns / MS.to_f] }
  end

  # Every sum there is must agree on the whole.
  def assert_sums_agree(profile, **filters)
    functions = profile.functions(**filters)
    assert_equal functions.total_ns, functions.functions.sum(&:self_ns), "self times of functions"
    states = profile.threads(**filters).threads
    assert_equal functions.total_ns, states.sum { |t| t.running_ns + t.gvl_wait_ns + t.blocked_ns + t.gc_ns + t.unknown_ns }, "states of threads"
    assert_equal functions.total_ns, profile.tree(**filters).roots.sum(&:total_ns), "roots of the tree"
    assert_equal functions.total_ns, profile.each_stack(**filters).sum { |*, ns| ns }, "stacks"
  end
end
