# frozen_string_literal: true

class CheckoutsController < ApplicationController
  def create
    receipt = Payment.charge(params[:cents].to_i)
    sale = Sale.create!(region: "region 0", cents: params[:cents].to_i, sold_on: Date.new(2024, 6, 1))
    render json: { sale: sale.id, receipt: receipt }
  end
end
