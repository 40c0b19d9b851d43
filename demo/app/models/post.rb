# frozen_string_literal: true

class Post < ApplicationRecord
  belongs_to :author
  has_many :comments

  def words
    body.split
  end
end
