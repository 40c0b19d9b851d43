# frozen_string_literal: true

Rails.application.routes.draw do
  root "posts#index"
  resources :posts, only: %i[index show]
  get "report", to: "reports#show"
  get "popular", to: "popular#show"
  post "checkout", to: "checkouts#create"
end
