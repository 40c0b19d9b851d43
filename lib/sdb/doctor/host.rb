# frozen_string_literal: true

module Sdb
  class Doctor
    # What the kernel says about this process: cgroup, seccomp, cores, limits. The folders are arguments so that
    # tests can be on another host.
    class Host
      def initialize(proc_dir, cgroup_dir)
        @proc = proc_dir
        @cgroup = cgroup_dir
      end

      # Bytes, nil for no limit or none that can be read. The nearest limit counts, however far up it is set.
      #: () -> Integer?
      def memory_limit
        [version2_limit, version1_limit].compact.min
      end

      # 0 none, 1 strict, 2 filter; nil when the kernel does not say.
      #: () -> Integer?
      def seccomp
        status_field("Seccomp")&.to_i
      end

      # Cores that this process may run on.
      #: () -> Integer
      def cores
        list = status_field("Cpus_allowed_list") or return 1
        list.split(",").sum { |part| part.split("-").map(&:to_i).then { |first, last| (last || first) - first + 1 } }
      end

      # [soft, hard] in bytes, Process::RLIM_INFINITY for none
      #: () -> [Integer, Integer]
      def memlock
        Process.getrlimit(:MEMLOCK)
      end

      private

      def status_field(name)
        read(File.join(@proc, "self/status"))&.[](/^#{name}:\s*(\S+)/, 1)
      end

      def version2_limit
        path = own_cgroup(/\A0::(.*)/) or return
        limits_up_from(@cgroup, path, "memory.max")
      end

      def version1_limit
        path = own_cgroup(/\A\d+:[^:]*\bmemory\b[^:]*:(.*)/) or return
        # Without a limit the file holds the largest multiple of a page that fits 63 bits.
        limits_up_from(File.join(@cgroup, "memory"), path, "memory.limit_in_bytes")&.then { |limit| limit if limit < 1 << 60 }
      end

      def own_cgroup(pattern)
        read(File.join(@proc, "self/cgroup"))&.lines(chomp: true)&.filter_map { |line| line[pattern, 1] }&.first
      end

      def limits_up_from(root, path, file)
        parts = path.split("/").reject { |part| part.empty? || part == ".." }
        limits = (0..parts.size).filter_map { |n| read(File.join(root, *parts.first(n), file)) }
        limits.grep(/\A\d+/).map(&:to_i).min
      end

      def read(path)
        File.read(path)
      rescue SystemCallError
        nil
      end
    end
  end
end
