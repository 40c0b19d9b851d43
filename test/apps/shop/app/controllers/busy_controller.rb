# frozen_string_literal: true

# Computes in Ruby for so many milliseconds.
class BusyController < ActionController::Base
  def show
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + params[:ms].to_i / 1000.0
    spin(finish)
    render plain: "done"
  end

  private

  def spin(finish)
    n = 0
    n += 1 while n % 1000 != 999 || Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
    n
  end
end
