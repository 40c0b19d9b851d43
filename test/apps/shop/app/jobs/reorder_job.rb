# frozen_string_literal: true

class ReorderJob < ActiveJob::Base
  queue_as :reorders

  def perform(seconds)
    sleep seconds
  end
end
