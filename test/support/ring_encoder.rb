# frozen_string_literal: true

require_relative "ring_encoder/compiler"

# Writes ring files in pure Ruby from what ext/format/FORMAT.md says, sharing no code with the recorder or the
# reader: where the three disagree, one of them or the document is wrong.
#
# RingEncoder.write tells a ring as a story (see Story). For bytes out of the ordinary use RingEncoder::File with
# ChunkRecords and SymbolRecords directly.
module RingEncoder
  # path: file to write. Options: see Story#initialize. Returns path.
  def self.write(path, ...)
    build(...).write(path)
  end

  # As above, but returns the File with its parts still to be changed.
  def self.build(**options, &)
    story = Story.new(**options)
    story.instance_eval(&)
    Compiler.new(story).compile
  end
end
