# frozen_string_literal: true

# The planted slow method.
class Stock
  def count_everything
    10.times { sleep 0.018 }
    :counted
  end
end
