# frozen_string_literal: true

class SlowController < ActionController::Base
  def show
    render plain: Stock.new.count_everything.to_s
  end

  # Says itself how long it took, in ns.
  def planted
    before = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    Stock.new.count_everything
    render plain: (Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - before).to_s
  end
end
