# frozen_string_literal: true

Gem::Specification.new do |spec|
  spec.name = "sdb"
  # Read, not loaded: the process may have another sdb in it.
  spec.version = File.read(File.join(__dir__, "lib/sdb/version.rb"))[/VERSION = "(.+)"/, 1]
  spec.summary = "Always-on profiler for Ruby services: samples every thread each millisecond without the GVL"
  spec.description = <<~TEXT
    A native thread that never takes the GVL samples the stacks of all live Ruby threads every millisecond and
    writes them to a file of fixed size. Afterwards, offline, the sdb command tells why a request was slow,
    who held the GVL while it waited, and what every thread was doing before the process was killed.
  TEXT
  spec.authors = ["The sdb developers"]
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  # No URIs: RubyGems takes absolute ones only, and this source has no fixed address. What they would lead to is in the gem.
  spec.metadata = { "rubygems_mfa_required" => "true" }
  spec.extra_rdoc_files = %w[README.md CHANGELOG.md SECURITY.md LICENSE]
  spec.rdoc_options = %w[--main README.md]

  spec.files = Dir.chdir(__dir__) do
    Dir["lib/**/*.{rb,rake,html,css,js}", "ext/**/*.{c,h,rb,md}", "ext/Rakefile", "exe/*", "LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md"]
  end
  spec.bindir = "exe"
  spec.executables = ["sdb"]
  spec.require_paths = ["lib"]
  # Rake, which is part of every Ruby, runs ext/Rakefile at installation. See there why it is no dependency.
  spec.extensions = ["ext/Rakefile"]
end
