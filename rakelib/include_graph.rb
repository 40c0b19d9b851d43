# frozen_string_literal: true

require "tsort"

# Which file of the native code includes which, layer by layer (ext/README.md). For test/test_layering.rb, which allows
# no arrow up and no circle, and for `rake graph`, which prints it.
class IncludeGraph
  # layer => [the layers below it that it may include, whether it knows Ruby's headers]; lowest first
  LAYERS = {
    "ext/format" => [[], false],
    "ext/recorder/core" => [%w[ext/format], false],
    "ext/recorder/scan" => [%w[ext/recorder/core ext/format], false],
    "ext/recorder/vm" => [%w[ext/recorder/scan ext/recorder/core ext/format], true],
    "ext/recorder/spans" => [%w[ext/recorder/vm ext/recorder/scan ext/recorder/core ext/format], true],
    "ext/recorder/recorder" => [%w[ext/recorder/spans ext/recorder/vm ext/recorder/scan ext/recorder/core ext/format], true],
    "ext/recorder/glue" => [%w[ext/recorder/recorder ext/recorder/spans ext/recorder/vm ext/recorder/scan ext/recorder/core
                               ext/format], true],
    "ext/reader/log" => [%w[ext/format], false],
    "ext/reader/profile" => [%w[ext/reader/log ext/format], false],
    "ext/reader/glue" => [%w[ext/reader/profile ext/reader/log ext/format], true],
    "bpf" => [%w[ext/format ext/reader/log], false]
  }.freeze
  # bpf/.output is generated.
  MADE = /\Aoom_hook\.skel\.h\z/

  Include = Struct.new(:layer, :path, :line, :name, :quoted, :target) do
    def to_s = "#{path}:#{line} includes #{target || name}"
  end

  def initialize(root = File.expand_path("..", __dir__))
    @root = root
  end

  # [[layer, path]]
  def sources
    @sources ||= Dir.chdir(@root) { LAYERS.keys.flat_map { |layer| Dir["#{layer}/*.{c,h}"].sort.map { |path| [layer, path] } } }
  end

  #: () -> Array[Include]
  def includes
    @includes ||= sources.flat_map { |layer, path| includes_of(layer, path) }
  end

  # Those in quotes, but not generated ones.
  def own_includes = includes.select { |include| include.quoted && !include.name.match?(MADE) }

  # Includes of files that are in no layer below, and of files that are not there.
  def up
    own_includes.reject { |include| include.target && allowed(include.layer).include?(layer_of(include.target)) }
  end

  # [["a", "b"], ...]: modules that need each other. x.c, x.h and x_impl.h are one module.
  def circles
    strongly_connected.select { |modules| modules.size > 1 }.map { |modules| modules.map { |name| File.basename(name) }.sort }
  end

  def layer_of(path) = LAYERS.keys.find { |layer| File.dirname(path) == layer }

  # Lines for people: per layer what it includes, and its modules, lowest first, with what each needs of its own layer.
  def to_s
    order = strongly_connected.flatten
    LAYERS.keys.map do |layer|
      modules = order.select { |name| layer_of(name) == layer }
      ["#{layer} -> #{below(layer)}", *modules.map { |name| module_line(name, layer) }].join("\n")
    end.join("\n\n")
  end

  private

  def below(layer)
    counts = own_includes.select { |i| i.layer == layer && i.target }.map { |i| layer_of(i.target) }.tally.reject { |to, _| to == layer }
    counts.empty? ? "(nothing)" : counts.sort.map { |to, n| "#{to} (#{n})" }.join(", ")
  end

  def module_line(name, layer)
    needs = modules.fetch(name, []).select { |other| layer_of(other) == layer }.map { |other| File.basename(other) }
    "  #{File.basename(name)}#{" -> #{needs.sort.join(", ")}" unless needs.empty?}"
  end

  # module => the modules that it includes
  def modules
    @modules ||= own_includes.select(&:target).each_with_object({}) do |include, graph|
      from, to = [include.path, include.target].map { |path| path.sub(/(_impl)?\.[ch]\z/, "") }
      graph[from] ||= []
      graph[from] |= [to] unless from == to
    end
  end

  def strongly_connected
    each_node = ->(&block) { (modules.keys | modules.values.flatten).sort.each(&block) }
    TSort.strongly_connected_components(each_node, ->(node, &block) { modules.fetch(node, []).each(&block) })
  end

  def allowed(layer) = [layer, *LAYERS.fetch(layer).first]

  def includes_of(layer, path)
    File.foreach(File.join(@root, path)).with_index(1).filter_map do |text, line|
      match = text.match(/\A\s*#\s*include\s+(["<])([^">]+)[">]/) or next
      quoted = match[1] == '"'
      Include.new(layer, path, line, match[2], quoted, (find(path, match[2]) if quoted))
    end
  end

  # Where a compiler would find it, given the include paths of build_support.rb and bpf/Makefile.
  def find(path, name)
    extension = path[%r{\Aext/(recorder|reader)}]
    folders = [File.dirname(path), extension, "ext/format", "ext", ("ext/reader" if path.start_with?("bpf"))].compact
    folders.map { |folder| File.join(folder, name) }.find { |candidate| File.file?(File.join(@root, candidate)) }
  end
end
