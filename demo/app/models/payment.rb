# frozen_string_literal: true

require "socket"

# Talks to the payment service, which takes its time.
class Payment
  def self.charge(cents)
    TCPSocket.open("127.0.0.1", Rails.configuration.x.payment_port) do |socket|
      socket.puts("charge #{cents}")
      socket.gets.to_s.strip
    end
  end
end
