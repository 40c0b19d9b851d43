# frozen_string_literal: true

require "test_helper"

# The Ruby side of the layers: a folder below lib/sdb, with the file of the same name beside it, is a room, and an
# arrow goes down only. What answers questions knows nothing of the terminal or of pages, so both can use it.
class TestLayeringRuby < Minitest::Test
  LIB = File.expand_path("../lib/sdb", __dir__)
  # room => rooms it may require. Rooms that are not here may require none of ABOVE.
  ROOMS = {
    "shared" => %w[value],
    "profile" => %w[errors native ring shared value],
    "oom" => %w[errors open profile ring shared],
    "export" => %w[errors profile shared],
    "report" => %w[oom profile shared value],
    "cli" => nil,
    "tasks" => %w[cli]
  }.freeze
  ABOVE = { "cli" => "CLI", "report" => "Report", "export" => "Export", "oom" => "Oom" }.freeze

  def test_a_room_requires_only_the_rooms_below_it
    wrong = requires.reject { |room, target, _| target == room || permitted?(room, target) }
    assert_empty(wrong.map { |_, target, place| "#{place} requires #{target}" })
  end

  def test_a_room_names_no_constant_of_a_room_above_it
    wrong = files.flat_map do |path|
      forbidden = ABOVE.reject { |room, _| room == room_of(path) || permitted?(room_of(path), room) }.values
      code_lines(path).select { |line, _| line.scan(/(?<![:\w])(?:Sdb::)?(\w+)::/).flatten.intersect?(forbidden) }
                      .map { |line, number| "#{path}:#{number} says #{line.strip}" }
    end
    assert_empty wrong
  end

  def test_each_room_has_files
    ROOMS.each_key { |room| refute_empty(files.select { |path| room_of(path) == room }, "no room #{room}") }
  end

  private

  def permitted?(room, target)
    allowed = ROOMS.fetch(room) { return !ABOVE.key?(target) }
    allowed.nil? || allowed.include?(target)
  end

  def files = Dir["#{LIB}/**/*.rb"]

  def room_of(path) = path.delete_prefix("#{LIB}/").delete_suffix(".rb").split("/").first

  # [[room, room required, "path:line"]]
  def requires
    files.flat_map do |path|
      code_lines(path).filter_map do |line, number|
        target = line[/\brequire_relative "([^"#]+)/, 1] or next
        file = File.expand_path(target, File.dirname(path))
        [room_of(path), room_of(file), "#{path.delete_prefix("#{LIB}/")}:#{number}"] if file.start_with?("#{LIB}/")
      end
    end
  end

  # [[line, number]] without comments
  def code_lines(path)
    File.readlines(path).each_with_index.map { |line, i| [line, i + 1] }.reject { |line, _| line.match?(/\A\s*#/) }
  end
end
