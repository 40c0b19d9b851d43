# frozen_string_literal: true

class Product < ActiveRecord::Base
  def self.make_table
    ActiveRecord::Migration.verbose = false
    ActiveRecord::Schema.define { create_table(:products, force: true) { |t| t.string :name } }
    insert_all!(Array.new(20) { |n| { id: n + 1, name: "Product #{n + 1}" } })
  end
end
