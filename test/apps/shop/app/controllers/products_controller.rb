# frozen_string_literal: true

class ProductsController < ActionController::Base
  def index
    names = Rails.cache.fetch("names") { Product.order(:id).pluck(:name) }
    render plain: names.join(", ")
  end

  def show
    render plain: Product.find(params[:id]).name
  end

  def later
    job = ReorderJob.perform_later(0.05)
    render plain: job.job_id
  end

  def fail
    raise KeyError, "on purpose"
  end

  def tagged
    Sdb.tag(token: params[:token], customer: 7) if defined?(Sdb)
    render plain: "tagged"
  end

  def request_id
    render plain: request.request_id
  end
end
