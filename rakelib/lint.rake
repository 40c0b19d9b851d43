# frozen_string_literal: true

# How the sources look, and that none forgot its licence: `rake lint`. `rake format` mends what can be mended.
# The layers are checked by test/test_layering.rb and test/test_layering_ruby.rb.

require "open3"
require_relative "named_code"

module Lint
  MAX_LINES = 640

  module_function

  def c_files
    tracked("*.c", "*.h")
  end

  def tracked(*patterns)
    # New files too, so that a check before the commit sees them.
    Open3.capture2("git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns).first.split("\n")
         .select { |path| File.file?(path) }
  end

  # Runs each check, which gives what is wrong as lines, :skip and why, or nothing.
  def run(checks)
    counts = { passed: 0, failed: 0, skipped: 0 }
    checks.each do |name, check|
      wrong = check.call
      if wrong.is_a?(Symbol) || wrong.first == :skip
        puts "SKIP #{name}: #{wrong.last}"
        counts[:skipped] += 1
      else
        puts "#{name}: #{wrong.empty? ? "ok" : "#{wrong.size} wrong"}", wrong.first(60).map { |line| "  #{line}" }
        counts[wrong.empty? ? :passed : :failed] += 1
      end
    end
    puts "#{counts[:passed]} passed, #{counts[:failed]} failed, #{counts[:skipped]} skipped"
    counts[:failed].zero?
  end

  def clang_format
    return [:skip, "clang-format is not installed (Debian: clang-format)"] unless on_path?("clang-format")

    c_files.reject { |path| Open3.capture2("clang-format", path).first == File.read(path) }
           .map { |path| "#{path}: rake format" }
  end

  def rubocop
    output, status = Open3.capture2e("bundle", "exec", "rubocop", "--format", "emacs", "--no-color")
    return [] if status.success?

    lines = output.split("\n")
    offences = lines.grep(/:\d+:\d+: [A-Z]: /)
    (offences.empty? ? lines : offences).map { |line| line.delete_prefix("#{Dir.pwd}/") }
  end

  def licence
    c_files.reject { |path| File.open(path, &:gets).to_s.include?("SPDX-License-Identifier: MIT") }
           .reject { |path| File.foreach(path).first(3).join.include?("SPDX-License-Identifier:") }
  end

  def frozen_literals
    tracked("*.rb", "*.rake", "Rakefile", "Gemfile", "*.gemspec", "*.ru")
      .reject { |path| File.foreach(path).first(2).join.include?("# frozen_string_literal: true") }
  end

  def long_files
    tracked("*.c", "*.h", "*.rb", "*.rake", "*.js", "*.mjs", "*.css")
      .map { |path| [path, File.foreach(path).count] }.select { |_, lines| lines > MAX_LINES }
      .map { |path, lines| "#{path}: #{lines} lines, more than #{MAX_LINES}" }
  end

  def named_code = NamedCode.new.stale

  def on_path?(name)
    ENV["PATH"].split(":").any? { |dir| File.executable?(File.join(dir, name)) }
  end
end

desc "Check formatting, RuboCop, licences, file lengths, and that what comments name is there"
task :lint do
  checks = %i[clang_format rubocop licence frozen_literals long_files named_code]
  Lint.run(checks.to_h { |name| [name, Lint.method(name)] }) or abort "lint failed"
end

desc "Mend the formatting of C and Ruby sources"
task :format do
  sh "clang-format", "-i", *Lint.c_files, verbose: false
  sh "bundle", "exec", "rubocop", "--autocorrect", "--format", "offenses"
end
