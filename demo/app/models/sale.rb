# frozen_string_literal: true

class Sale < ApplicationRecord
end
