# frozen_string_literal: true

require "etc"
require "fileutils"

# Runs programs with system calls refused, as container runtimes and old kernels refuse them.
module SandboxHelper
  SOURCE = File.expand_path("deny.c", __dir__)
  BINARY = File.expand_path("../../tmp/deny", __dir__)
  # close_range has one number everywhere
  NUMBERS = { "x86_64" => { unshare: 272, process_vm_readv: 310 }, "aarch64" => { unshare: 97, process_vm_readv: 270 } }
            .fetch(Etc.uname[:machine], {}).merge(close_range: 436).freeze
  ERRNOS = { eperm: Errno::EPERM::Errno, enosys: Errno::ENOSYS::Errno }.freeze

  # denied: { close_range: :enosys }. The words to put before a command.
  def denying(denied)
    denied.each_key { |call| skip "the number of #{call} on this machine is not known here" unless NUMBERS[call] }
    build_deny
    [BINARY, *denied.map { |call, errno| "#{NUMBERS.fetch(call)}=#{ERRNOS.fetch(errno)}" }, "--"]
  end

  private

  def build_deny
    return if File.exist?(BINARY) && File.mtime(BINARY) > File.mtime(SOURCE)

    FileUtils.mkdir_p(File.dirname(BINARY))
    part = "#{BINARY}.#{Process.pid}"
    skip "no C compiler" unless system("cc", "-o", part, SOURCE)
    File.rename(part, BINARY)
  end
end
