# frozen_string_literal: true

require_relative "application"
Shop::Application.initialize!
Product.make_table
run Rails.application
