# frozen_string_literal: true

require "support/ring_encoder"

# A small shop under load for a second: two workers, one slow request that waits for the other's GVL.
module SampleRing
  module_function

  def write(path, **options)
    RingEncoder.write(path, service: "shop", argv: %w[puma -t 2], pid: 4242, **options) do
      code :main, "<main>", path: "/app/main.rb", line: 1
      code :users, "UsersController#index", path: "/app/users.rb", line: 10
      code :report, "ReportsController#show", path: "/app/reports.rb", line: 20
      code :times, "Integer#times"
      code :read, "IO#read"
      thread :main, tid: 4242, main: true
      thread :w1, tid: 4243, name: "puma srv tp 001"
      thread :w2, tid: 4244, name: "puma srv tp 002"

      at 0, main: blocked("main:3 read"), w1: blocked("read"), w2: blocked("read")
      at 100, w1: running("users:12 times")
      at 140, w1: gvl_wait("users:13"), w2: running("report:25 times")
      at 260, w1: running("users:14"), w2: blocked("report:26 read")
      at 300, w1: blocked("read")
      at 400, w1: running("users:12")
      at 410, w1: blocked("read")
      span 100..300, :w1, id: "slow-1", name: "UsersController#index", status: 200, cpu: 80, gvl_wait: 120, blocked: 0,
                          allocations: 1234, tags: { customer: 7 }
      span 400..410, :w1, id: "quick-1", name: "UsersController#index", status: 200, cpu: 10
      span 140..nil, :w2, id: "open-1", name: "ReportsController#show", kind: "job"
      mark 50, "deploy"
      memory 10, 64 << 20
      finish 1000
      status state: :closed
    end
  end
end
