# frozen_string_literal: true

# What comments and documents say of the code by name: `scan/visit.c:read_stack`, `sdb_thread_view`, `core/mailbox.h`.
# A name that no longer exists is a claim that no longer holds. For `rake lint` and test/test_named_code.rb.
class NamedCode
  ROOT = File.expand_path("..", __dir__)
  SOURCES = "{ext,bpf}/**/*.{c,h}"
  DOCUMENTS = "{README.md,ext/**/*.md,bpf/*.md}"
  FOLDERS = "(?:ext/|recorder/|reader/)*(?:core|scan|vm|spans|recorder|glue|log|profile|format|bpf)"
  # Libraries, and what stands for any name.
  NO_NAMES = /\Asdb_(recorder|reader|oomd|x|module|\w*_)\z/

  def initialize(root = ROOT)
    @root = root
    @sources = glob(SOURCES).reject { |path| path.include?("/build/") }
    @code = @sources.to_h { |path| [path, without_comments(read(path))] }
    @identifiers = @code.values.flat_map { |text| text.scan(/[A-Za-z_]\w+/) }.uniq
    @identifiers.concat(generated, ruby_sources.flat_map { |path| read(path).scan(/\bSDB_[A-Z_]+\b/) })
    @known = @identifiers.to_h { |name| [name, true] }
  end

  # ["path:line: what is named and is not there"]
  def stale
    places.flat_map { |path, line, text| wrong(path, text).map { |what| "#{path}:#{line}: #{what}" } }
  end

  # True when a file of ours has a function, or anything else of that name, outside of its comments.
  def exist?(file, name)
    files(file).any? { |path| @code.fetch(path) { read(path) }.match?(/\b#{Regexp.escape(name)}\b/) }
  end

  # Paths that end with what a comment says: "visit.c", "scan/visit.c".
  def files(name)
    (@sources + ruby_sources).select { |path| path == name || path.end_with?("/#{name}") }
  end

  private

  def wrong(path, text)
    missing_functions(text) + missing_files(text) + missing_names(text) + missing_endings(path, text)
  end

  # file:function, of our files only: comments name CRuby's as well, and say so where both have a file of that name.
  def missing_functions(text)
    text.scan(%r{(?<!CRuby's )(?<![\w/.])([\w/]+\.(?:c|h|rb)):([a-zA-Z_]\w*[?!]?)}).reject { |file, name| files(file).empty? || exist?(file, name) }
        .map { |file, name| "#{file} has no #{name}" }
  end

  def missing_files(text)
    text.scan(%r{(?<![\w/.-])#{FOLDERS}/[a-z_]+\.[ch]\b}).select { |file| files(file.sub(%r{\A(ext|recorder|reader)/}, "")).empty? }
        .map { |file| "there is no #{file}" }
  end

  def missing_names(text)
    text.scan(%r{\b(?:rb_)?(?:sdb|SDB)_\w+\b(?!\.|\*|/)}).reject { |name| @known[name] || name.match?(NO_NAMES) }
        .map { |name| "nothing is called #{name}" }
  end

  # "_push: the thread that owns the queue": the end of a function's name, in a header.
  def missing_endings(path, text)
    return [] unless path.end_with?(".h")

    text.scan(/(?<=[\s(,])_[a-z][a-z_]+\b(?![.\d])/).reject { |ending| endings.any? { |name| name.end_with?(ending) } || @known[ending] }
        .map { |ending| "no name ends with #{ending}" }
  end

  def endings = @endings ||= @identifiers.select { |name| name.start_with?("sdb_", "rb_sdb_", "SDB_") }.map(&:downcase)

  # Names that a macro makes: SDB_C_TICKS of X(TICKS, ticks).
  def generated
    read("ext/format/ring_format.h").scan(/^\s*X\((\w+), (\w+)\)/).map { |name, _| "SDB_C_#{name}" }
  end

  # [path, line, comment or line of a document]
  def places
    @sources.flat_map { |path| comments(path) } +
      glob(DOCUMENTS).flat_map { |path| read(path).each_line.with_index(1).map { |text, line| [path, line, text] } }
  end

  def comments(path)
    text = read(path)
    found = []
    text.scan(%r{/\*.*?\*/}m) { |comment| found << [path, text[0...Regexp.last_match.begin(0)].count("\n") + 1, comment] }
    found
  end

  def ruby_sources = @ruby_sources ||= glob("{lib,test,rakelib,exe,bin}/**/*.{rb,rake}").reject { |path| path.include?("node_modules") }

  def without_comments(text) = text.gsub(%r{/\*.*?\*/}m, " ")

  def glob(pattern) = Dir.chdir(@root) { Dir[pattern] }.sort

  def read(path) = File.read(File.join(@root, path))
end
