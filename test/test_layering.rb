# frozen_string_literal: true

require "test_helper"
require_relative "../rakelib/include_graph"

# The layers of ext/README.md, enforced by reading each file's includes: a file may include its own layer and the
# layers named for it, and may know of CRuby only where that is said.
class TestLayering < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  GRAPH = IncludeGraph.new(ROOT)
  RUBY_HEADER = %r{\A(ruby|internal|vm_core|iseq|debug_counter)(\.h|/)}
  # What a reader that opens a production log on any POSIX system cannot include.
  LINUX_ONLY = %r{\A(linux/|sys/(prctl|syscall|eventfd|epoll|inotify|signalfd|timerfd|sysinfo|vfs)\.h|sched\.h)}

  DECLARATION = /^(?:[a-z]\w*[\w *]*[ *])?(sdb_\w+)\(/

  def test_a_file_includes_only_the_layers_below_its_own
    assert_empty(GRAPH.up.map(&:to_s))
  end

  # x.c, x.h and x_impl.h are one module.
  def test_no_circle_between_the_modules_of_a_folder
    assert_empty(GRAPH.circles.map { |modules| modules.join(" <-> ") })
  end

  def test_a_struct_tag_means_one_thing_in_both_libraries
    assert_empty(in_both_libraries(/^(?:struct|enum) (sdb_\w+) \{/, "{c,h}"))
  end

  # Declared in a header: what one file keeps to itself confuses nobody.
  def test_a_function_name_means_one_thing_in_both_libraries
    assert_empty(in_both_libraries(DECLARATION, "h"))
  end

  # By the recorder, the reader or the C tests. A name at the start of a line declares or defines.
  def test_a_function_that_a_header_declares_is_used
    code = Dir.chdir(ROOT) { Dir["{ext,bpf,test/c,test/support}/**/*.{c,h}"] }.to_h { |path| [path, without_comments(path)] }
    declared = code.flat_map { |path, text| path.start_with?("ext/") && path.end_with?(".h") ? text.scan(DECLARATION) : [] }.flatten
    refute_empty(declared)
    named = code.values.flat_map { |text| text.scan(/\bsdb_\w+/) }.tally
    made = code.values.flat_map { |text| text.scan(DECLARATION) }.flatten.tally
    assert_empty(declared.uniq.select { |name| named.fetch(name) <= made.fetch(name) })
  end

  def test_only_vm_and_what_is_above_it_know_ruby
    wrong = GRAPH.includes.select { |i| i.name.match?(RUBY_HEADER) && !IncludeGraph::LAYERS.fetch(i.layer).last }
    assert_empty(wrong.map(&:to_s))
  end

  def test_the_reader_includes_nothing_that_only_linux_has
    wrong = GRAPH.includes.select { |i| i.layer.start_with?("ext/reader", "ext/format") && i.name.match?(LINUX_ONLY) }
    assert_empty(wrong.map(&:to_s))
  end

  # protect.c raises again what it held.
  def test_only_glue_raises
    glue = %w[ext/recorder/glue ext/reader/glue]
    wrong = GRAPH.sources.select { |layer, path| !glue.include?(layer) && raises?(path) && path != "ext/recorder/vm/protect.c" }
    assert_empty(wrong.map(&:last))
  end

  def test_every_source_belongs_to_a_layer
    strays = Dir.chdir(ROOT) { Dir["{ext,bpf}/**/*.{c,h}"] }.reject { |path| GRAPH.layer_of(path) || path.include?("/build/") }
    assert_empty(strays)
    IncludeGraph::LAYERS.each_key { |layer| refute_empty(GRAPH.sources.select { |l, _| l == layer }, "no sources in #{layer}") }
  end

  private

  # What `pattern` finds in the sources of the recorder and in those of the reader.
  def in_both_libraries(pattern, extension)
    found = %w[recorder reader].map do |library|
      paths = GRAPH.sources.filter_map { |layer, path| path if layer.start_with?("ext/#{library}") }
      paths = paths.select { |path| File.fnmatch?("*.#{extension}", path, File::FNM_EXTGLOB) }
      paths.flat_map { |path| File.read(File.join(ROOT, path)).scan(pattern) }.flatten
    end
    found.each { |names| refute_empty(names) }
    found.first & found.last
  end

  def raises?(path)
    without_comments(path).match?(/\brb_(raise|exc_raise|sys_fail|bug|fatal)\s*\(/)
  end

  def without_comments(path) = File.read(File.join(ROOT, path)).gsub(%r{/\*.*?\*/}m, "")
end
