# frozen_string_literal: true

class PostsController < ApplicationController
  # One query for the posts, then two more for each: the N+1 of the demo.
  def index
    @posts = Post.order(:id).limit(25)
  end

  def show
    @post = Post.includes(:author, :comments).find(params[:id])
  end
end
