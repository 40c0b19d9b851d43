# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# C03: no call that never happened, no name of another; the short form of test/stress/call_edges.rb, which proves it.
class TestC03CallEdges < Minitest::Test
  include CaseHelper

  STRESS = File.expand_path("../stress/call_edges.rb", __dir__)

  def test_every_edge_of_a_program_with_a_known_call_graph_is_true
    out, err, status = Open3.capture3({ "SDB" => nil }, RbConfig.ruby, "-I#{LIB}", STRESS, long(10_000, 1_000_000).to_s, @dir)
    assert_predicate status, :success?, out + err
    assert_match(/impossible edges 0, wrong names 0/, out)
    assert_operator out[/unresolved (\S+) %/, 1].to_f, :<, 0.1, out
    assert_operator out[/torn (\S+) %/, 1].to_f, :<, 0.5, out
  end
end
