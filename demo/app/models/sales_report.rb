# frozen_string_literal: true

# Sums up sales by region and week, in Ruby where SQL would do: the CPU work of the demo.
class SalesReport
  def initialize(sales)
    @sales = sales
  end

  def regions
    @sales.group_by(&:region).map { |region, sales| [region, weeks(sales)] }.sort
  end

  private

  def weeks(sales)
    sales.group_by { |sale| sale.sold_on.cweek }.sort.map { |week, rows| [week, rows.size, median(rows.map(&:cents))] }
  end

  def median(values)
    values.sort[values.size / 2]
  end
end
