# frozen_string_literal: true

module Sdb
  module CLI
    # The name that was probably meant. Own code because did_you_mean may be switched off.
    module Nearest
      module_function

      # nil when nothing is near.
      #: (String, Array[String]) -> String?
      def find(word, names)
        word = word.to_s.downcase
        best = names.min_by { |name| [distance(word, name.downcase), name] } or return
        return best if best.downcase.start_with?(word) && word.length >= 2

        prefixed = names.select { |name| word.length >= 3 && name.downcase.start_with?(word) }
        return prefixed.min_by(&:length) unless prefixed.empty?

        best if distance(word, best.downcase) <= [word.length, best.length].max / 3.0
      end

      # " Did you mean x?" or ""
      #: (String, Array[String]) -> String
      def hint(word, names)
        name = find(word, names)
        name ? " Did you mean #{name}?" : ""
      end

      # Edits from one to the other, where swapping two neighbours is one.
      def distance(left, right)
        rows = [(0..right.length).to_a]
        left.each_char.with_index(1) do |a, i|
          row = [i]
          right.each_char.with_index(1) do |b, j|
            cost = [row[j - 1] + 1, rows[i - 1][j] + 1, rows[i - 1][j - 1] + (a == b ? 0 : 1)].min
            swapped = i > 1 && j > 1 && a == right[j - 2] && left[i - 2] == b
            row << (swapped ? [cost, rows[i - 2][j - 2] + 1].min : cost)
          end
          rows << row
        end
        rows.last.last
      end
    end
  end
end
