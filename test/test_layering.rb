# frozen_string_literal: true

require "test_helper"
require "tsort"

# The layers of ext/README.md, enforced by reading each file's includes: a file may include its own layer and the
# layers named for it, and may know of CRuby only where that is said.
class TestLayering < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  # layer => [folders it may include from, knows Ruby's headers]
  LAYERS = {
    "ext/format" => [[], false],
    "ext/recorder/core" => [%w[ext/format], false],
    "ext/recorder/scan" => [%w[ext/recorder/core ext/format], false],
    "ext/recorder/vm" => [%w[ext/recorder/scan ext/recorder/core ext/format], true],
    "ext/recorder/spans" => [%w[ext/recorder/vm ext/recorder/scan ext/recorder/core ext/format], true],
    "ext/recorder/recorder" => [%w[ext/recorder/core ext/recorder/scan ext/recorder/vm ext/recorder/spans ext/format], true],
    "ext/recorder/glue" => [%w[ext/recorder/recorder ext/recorder/spans ext/recorder/scan ext/recorder/vm ext/recorder/core ext/format], true],
    "ext/reader/log" => [%w[ext/format], false],
    "ext/reader/profile" => [%w[ext/reader/log ext/format], false],
    "ext/reader/glue" => [%w[ext/reader/profile ext/reader/log ext/format], true],
    "bpf" => [%w[ext/format ext/reader/log], false]
  }.freeze
  RUBY_HEADER = %r{\A(ruby|internal|vm_core|iseq|debug_counter)(\.h|/)}
  # Circles that are being cut.
  BEING_CUT = ["ring_file <-> ring_identity", "symbolizer <-> symbolizer_work"].freeze
  # What a reader that opens a production log on any POSIX system cannot include.
  LINUX_ONLY = %r{\A(linux/|sys/(prctl|syscall|eventfd|epoll|inotify|signalfd|timerfd|sysinfo|vfs)\.h|sched\.h)}
  # bpf/.output is generated.
  MADE = /\Aoom_hook\.skel\.h\z/

  def test_a_file_includes_only_the_layers_below_its_own
    wrong = quoted_includes.reject { |layer, _, target| target && allowed(layer).include?(layer_of(target)) }
    assert_empty(wrong.map { |_, place, target, name| "#{place} includes #{target || name}" })
  end

  # x.c, x.h and x_impl.h are one module.
  def test_no_circle_between_the_modules_of_a_folder
    graph = Hash.new { |hash, module_name| hash[module_name] = [] }
    quoted_includes.each do |_, place, target|
      from, to = [place.sub(/:\d+\z/, ""), target].map { |path| path&.sub(/(_impl)?\.[ch]\z/, "") }
      graph[from] |= [to] if to && from != to
    end
    circles = strongly_connected(graph).select { |modules| modules.size > 1 }
    assert_empty(circles.map { |modules| modules.map { |m| File.basename(m) }.sort.join(" <-> ") } - BEING_CUT)
  end

  def test_only_vm_and_what_is_above_it_know_ruby
    wrong = includes.select { |layer, _, name| name.match?(RUBY_HEADER) && !LAYERS.fetch(layer).last }
    assert_empty(wrong.map { |_, place, name| "#{place} includes #{name}" })
  end

  def test_the_reader_includes_nothing_that_only_linux_has
    wrong = includes.select { |layer, _, name| layer.start_with?("ext/reader", "ext/format") && name.match?(LINUX_ONLY) }
    assert_empty(wrong.map { |_, place, name| "#{place} includes #{name}" })
  end

  # protect.c raises again what it held.
  def test_only_glue_raises
    glue = %w[ext/recorder/glue ext/reader/glue]
    wrong = sources.select { |layer, path| !glue.include?(layer) && raises?(path) && path != "ext/recorder/vm/protect.c" }
    assert_empty(wrong.map(&:last))
  end

  def test_every_source_belongs_to_a_layer
    strays = Dir.chdir(ROOT) { Dir["{ext,bpf}/**/*.{c,h}"] }.reject { |path| layer_of(path) || path.include?("/build/") }
    assert_empty(strays)
    LAYERS.each_key { |layer| refute_empty(sources.select { |l, _| l == layer }, "no sources in #{layer}") }
  end

  private

  def strongly_connected(graph)
    each_node = ->(&block) { (graph.keys | graph.values.flatten).each(&block) }
    TSort.strongly_connected_components(each_node, ->(node, &block) { graph.fetch(node, []).each(&block) })
  end

  def allowed(layer)
    [layer, *LAYERS.fetch(layer).first]
  end

  def layer_of(path)
    LAYERS.keys.find { |layer| File.dirname(path) == layer }
  end

  # [[layer, path]]
  def sources
    Dir.chdir(ROOT) { LAYERS.keys.flat_map { |layer| Dir["#{layer}/*.{c,h}"].map { |path| [layer, path] } } }
  end

  # [[layer, "path:line", header]]
  def includes
    sources.flat_map { |layer, path| lines(path).map { |place, name, _| [layer, place, name] } }
  end

  # [[layer, "path:line", the file meant or nil, header]], of the includes in quotes, but not generated ones
  def quoted_includes
    sources.flat_map do |layer, path|
      lines(path).select { |_, name, quoted| quoted && !name.match?(MADE) }
                 .map { |place, name, _| [layer, place, find(path, name), name] }
    end
  end

  def lines(path)
    File.readlines(File.join(ROOT, path)).each_with_index.filter_map do |line, i|
      match = line.match(/\A\s*#\s*include\s+(["<])([^">]+)[">]/)
      ["#{path}:#{i + 1}", match[2], match[1] == '"'] if match
    end
  end

  # Where a compiler would find it, given the include paths of build_support.rb and bpf/Makefile.
  def find(path, name)
    extension = path[%r{\Aext/(recorder|reader)}]
    folders = [File.dirname(path), extension, "ext/format", "ext", ("ext/reader" if path.start_with?("bpf"))].compact
    folders.map { |folder| File.join(folder, name) }.find { |candidate| File.file?(File.join(ROOT, candidate)) }
  end

  def raises?(path)
    code = File.read(File.join(ROOT, path)).gsub(%r{/\*.*?\*/}m, "")
    code.match?(/\brb_(raise|exc_raise|sys_fail|bug|fatal)\s*\(/)
  end
end
