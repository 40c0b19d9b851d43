# frozen_string_literal: true

class PopularController < ApplicationController
  # Slow once in two seconds, fast in between: who misses the cache?
  def show
    @words = Rails.cache.fetch("popular", expires_in: 2.seconds) { count_words }
  end

  private

  def count_words
    Comment.pluck(:body).flat_map(&:split).tally.sort_by { |word, count| [-count, word] }.first(10)
  end
end
