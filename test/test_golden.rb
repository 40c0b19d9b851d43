# frozen_string_literal: true

require "test_helper"
require "golden/golden"

# Logs written once and kept: whoever changes the reader still reads them, and answers the same.
class TestGolden < Minitest::Test
  Golden.logs.each do |path|
    name = path.delete_prefix("#{Golden::DIR}/").delete_suffix(".sdb.gz")
    define_method(:"test_#{name.tr("/", "_")}_is_answered_as_ever") do
      expected = JSON.parse(File.read(path.sub(/\.sdb\.gz\z/, ".json")))
      found = Golden.ask(path)
      assert_equal expected.keys, found.keys, found["error"]
      expected.each { |question, answer| assert_equal answer, known(answer, found[question]), question }
    end
  end

  def test_there_are_good_and_bad_ones
    assert_operator Golden.logs.size, :>=, 11
  end

  private

  # Of what was found, the fields that were there when the answer was kept: fields are only ever added.
  def known(kept, found)
    case kept
    when Hash then found.is_a?(Hash) ? found.slice(*kept.keys).to_h { |key, value| [key, known(kept[key], value)] } : found
    when Array then found.is_a?(Array) ? found.each_with_index.map { |value, i| known(kept[i], value) } : found
    else found
    end
  end
end
