# frozen_string_literal: true

class SlowController < ActionController::Base
  def show
    render plain: Stock.new.count_everything.to_s
  end
end
