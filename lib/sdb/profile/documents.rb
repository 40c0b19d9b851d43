# frozen_string_literal: true

require_relative "../value"

module Sdb
  # The answers, as frozen value objects. All times are Integer nanoseconds; *_ns instants count from the
  # start of the ring they are in; :start, :end and :at are RFC 3339 strings (UTC, with fractions). :lost is what the
  # recorders did not see, as Profile#lost has it.
  class Profile
    # One frame: root first in every `frames` Array. line is 0 where there is none (C methods).
    class Frame < Value.of(:name, :path, :line); end

    class FunctionTime < Value.of(:name, :path, :line, :self_ns, :total_ns); end

    # functions: Array of FunctionTime, most self time first.
    class Functions < Document.of(:metric, :total_ns, :threads, :samples, :unnamed_ns, :functions, :lost); end

    class LineTime < Value.of(:line, :self_ns, :total_ns); end

    # lines: Array of LineTime by line number.
    class Lines < Document.of(:path, :lines, :lost); end

    class ThreadTime < Value.of(:pid, :tid, :name, :start_ns, :end_ns, :running_ns, :gvl_wait_ns, :blocked_ns,
                                :gc_ns, :cpu_ns, :unknown_ns, :states)
    end

    class Threads < Document.of(:threads, :lost); end

    # children: Array of TreeNode, most total time first.
    class TreeNode < Value.of(:name, :path, :line, :self_ns, :total_ns, :children); end

    class Tree < Document.of(:metric, :total_ns, :roots, :lost); end

    # What calls a function and what it calls: callers and callees are Arrays of FunctionTime, in which
    # total_ns is the time that passed through that edge and self_ns the part of it spent in the callee
    # itself (callers) or in the named function (callees).
    class Callers < Document.of(:metric, :total_ns, :functions, :callers, :callees, :lost); end

    # state: "running", "gvl_wait", "blocked", "gc", "unknown". since_ns: ring time when it entered the state
    # and stack. span: name of the innermost open span, or nil.
    class ThreadStack < Value.of(:pid, :tid, :name, :state, :since_ns, :span, :frames); end

    class Stacks < Document.of(:at, :threads); end

    # Who held the GVL while a span waited for it: frames are the top ones of the holder, root first.
    class Blame < Value.of(:span_name, :thread, :ns, :frames); end

    SPAN_FIELDS = %i[id kind name start wall_ns cpu_ns running_ns gvl_wait_ns blocked_ns gc_ns allocations status
                     pid tid tags open blame trace_id start_ns end_ns parent].freeze

    # id: the request id. parent: Integer number of the enclosing span in its process, 0 none.
    class Span < Value.of(*SPAN_FIELDS); end

    class Spans < Document.of(:spans, :lost); end

    # ns of one state on one stack; holder: Blame of the longest holder where state is "gvl_wait", else nil.
    class Run < Value.of(:at_ns, :ns, :state, :frames, :holder); end

    class Request < Document.of(*SPAN_FIELDS, :runs, :lost); end

    # One stretch of one thread: what each_segment yields. thread is a ThreadInfo, cpu_ns the CPU time in it.
    class Segment < Value.of(:thread, :start_ns, :duration_ns, :state, :cpu_ns, :frames); end

    # ring: index into Profile#rings. serial: unique within its ring.
    class ThreadInfo < Value.of(:ring, :serial, :pid, :tid, :name, :start_ns, :end_ns, :states, :main, :own); end

    # Things that happened at a time; start_ns and at_ns are ring times, ring an index into Profile#rings.
    class Gap < Value.of(:ring, :start_ns, :duration_ns, :reason); end
    class GcRun < Value.of(:ring, :thread, :phase, :start_ns, :duration_ns, :count, :heap_live, :malloc_increase); end
    class Memory < Value.of(:ring, :at_ns, :rss_bytes, :cgroup_bytes, :limit_bytes); end
    class Mark < Value.of(:ring, :at_ns, :text); end
    class PreOom < Value.of(:ring, :at_ns, :percent, :values); end
    class CounterSample < Value.of(:ring, :at_ns, :values); end
  end
end
