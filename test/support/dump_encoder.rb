# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require_relative "ring_encoder"

# Writes dumps in pure Ruby from what ext/format/DUMP.md says, sharing no code with the daemon or the reader.
#
#   DumpEncoder.write("x.sdbdump", ring: "x.sdb", facts: { "cause" => "oom" }, flags: { complete: 1 },
#                     threads: [{ serial: 1, tid: 7, frames: [[iseq, pc, method, env], ...] }])
module DumpEncoder
  MAGIC = "SDDMP\xb1\xc2\xa7".b
  TYPES = { facts: 1, threads: 2, counters: 3, maps: 4, pending: 5, ring: 6 }.freeze
  METHOD = 0x11110001
  C_METHOD = 0x55550001
  C_BLOCK = 0x66660001
  DUMMY = 0x79990001

  module_function

  def write(path, ring: nil, facts: {}, flags: {}, threads: [], major: 1)
    bodies = { threads: threads.map { |thread| thread(**thread) }.join }
    bodies[:ring] = File.binread(ring) if ring
    words = facts.map { |key, value| "#{key}=#{value}\0" } + flags.map { |key, value| "flag.#{key}=#{value}\0" }
    bodies[:facts] = words.join
    File.binwrite(path, assemble(bodies, major))
    path
  end

  def assemble(bodies, major)
    out = "\0".b * 4096
    sections = bodies.map do |type, body|
      unit = type == :ring ? 4096 : 8
      out << "\0" * (-out.bytesize % unit)
      crc = type == :ring ? 0 : RingEncoder::Bytes.crc32c(body.b)
      [TYPES.fetch(type), crc, out.bytesize, body.bytesize].pack("LLQQ").tap { out << body.b }
    end
    header = MAGIC + [0x01020304, major, 0, sections.size, 0, out.bytesize, 1_764_460_900_000_000_000, 0, 0, 0].pack("LSSLLQ5")
    header = (header + sections.join).ljust(4096, "\0")
    header[20, 4] = [RingEncoder::Bytes.crc32c(header)].pack("L")
    out[0, 4096] = header
    out
  end

  def thread(serial:, tid:, frames:, state: 0, since: 0, flags: 0, slot: serial - 1, total: frames.size, span: 0, thread_flags: 0)
    [128 + 32 * frames.size, flags, slot, frames.size, total, serial, tid, state, since, 0, 0, 0, span, thread_flags,
     0, 0, 0, 0].pack("L4Q14") + frames.flatten.pack("Q*")
  end
end
