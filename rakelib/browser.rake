# frozen_string_literal: true

# The HTML reports in a real browser: `rake test:browser`.
#
# Needs Ruby, Node.js 20 or newer with npm, and Chromium (Debian: nodejs npm chromium); the npm packages are
# named in test/browser/package.json and are installed there. Uses neither the recorder nor the reader.

require "tmpdir"

namespace :test do
  desc "Open the HTML reports in headless Chromium"
  task :browser do
    BrowserTests.run
  end
end

# What `rake test:browser` does.
module BrowserTests
  FOLDER = File.expand_path("../test/browser", __dir__)
  BROWSERS = [ENV.fetch("SDB_CHROMIUM", nil), "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].compact.freeze

  extend Rake::FileUtilsExt

  module_function

  def run
    missing = missing_tools
    unless missing.empty?
      files = Dir[File.join(FOLDER, "*.test.mjs")].size
      puts "SKIP test:browser: #{missing.join(", ")}", "0 passed, 0 failed, #{files} skipped"
      return
    end
    install
    Dir.mktmpdir("sdb-browser") do |pages|
      sh RbConfig.ruby, File.join(FOLDER, "fixture.rb"), pages
      sh({ "SDB_BROWSER_PAGES" => pages }, "node", "--test", "--test-concurrency=2", *Dir[File.join(FOLDER, "*.test.mjs")].sort)
    end
  end

  def missing_tools
    missing = %w[node npm].reject { |tool| system(tool, "--version", out: File::NULL, err: File::NULL) }
    missing << "chromium" unless BROWSERS.any? { |path| File.executable?(path) }
    missing.map { |tool| "#{tool} is not installed" }
  end

  # Only when the lock file is newer than what is installed: a second run needs no registry.
  def install
    stamp = File.join(FOLDER, "node_modules", ".package-lock.json")
    return if File.exist?(stamp) && File.mtime(stamp) >= File.mtime(File.join(FOLDER, "package-lock.json"))

    Dir.chdir(FOLDER) { sh "npm", "ci", "--no-audit", "--no-fund" }
  end
end
