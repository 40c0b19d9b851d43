# frozen_string_literal: true

# Tables and some rows, made anew at each boot: the demo has no state worth keeping.
module Sample
  AUTHORS = 20
  POSTS = 60
  COMMENTS = 1500
  SALES = 8000
  WORDS = %w[ring scan frame thread stack tick slot chunk node span log state clock field page line].freeze

  module_function

  def load
    silence { tables }
    random = Random.new(7)
    ActiveRecord::Base.transaction do
      Author.insert_all!(Array.new(AUTHORS) { |i| { id: i + 1, name: "Author #{i + 1}" } })
      Post.insert_all!(Array.new(POSTS) { |i| post(i + 1, random) })
      Comment.insert_all!(Array.new(COMMENTS) { |i| { id: i + 1, post_id: random.rand(1..POSTS), body: words(random, 12) } })
      Sale.insert_all!(Array.new(SALES) { |i| sale(i + 1, random) })
    end
  end

  def tables
    ActiveRecord::Schema.define do
      create_table(:authors, force: true) { |t| t.string :name }
      create_table(:posts, force: true) { |t| t.integer :author_id; t.string :title; t.text :body }
      create_table(:comments, force: true) { |t| t.integer :post_id; t.text :body }
      create_table(:sales, force: true) { |t| t.string :region; t.integer :cents; t.date :sold_on }
    end
  end

  def silence
    ActiveRecord::Migration.verbose = false
    yield
  end

  def post(id, random)
    { id: id, author_id: random.rand(1..AUTHORS), title: words(random, 4).capitalize, body: words(random, 200) }
  end

  def sale(id, random)
    { id: id, region: "region #{random.rand(12)}", cents: random.rand(100..90_000), sold_on: Date.new(2024, 1, 1) + random.rand(365) }
  end

  def words(random, count)
    Array.new(count) { WORDS[random.rand(WORDS.size)] }.join(" ")
  end
end
