# frozen_string_literal: true

require_relative "include_graph"

desc "Print which file of the native code includes which, and whether an arrow goes up or round"
task :graph do
  graph = IncludeGraph.new
  up = graph.up
  circles = graph.circles
  puts graph, "", "#{graph.own_includes.size} includes, #{up.size} up, #{circles.size} circles"
  puts up, circles.map { |modules| modules.join(" <-> ") }
  abort if up.any? || circles.any?
end
