# frozen_string_literal: true

require_relative "puma"

module Sdb
  # Unicorn and Pitchfork: the ring of each worker is tagged with its number. Their apps are made by Rack::Builder.
  module Unicorn
    class << self
      #: (Class) -> bool
      def arrange(owner)
        case owner.name
        when "Unicorn::Worker" then worker(owner)
        when "Unicorn::HttpServer" then server(owner)
        else mold(owner)
        end
      end

      private

      # Unicorn's master makes the worker's object right before it forks.
      def worker(owner)
        return false unless owner.private_method_defined?(:initialize, false)

        Integrations.follow(owner.instance_method(:initialize), :return) { |event| child_is(event.self) }
      end

      # When all are there, other children are no workers.
      def server(owner)
        return false unless owner.method_defined?(:spawn_missing_workers) || owner.private_method_defined?(:spawn_missing_workers)

        Integrations.follow(owner.instance_method(:spawn_missing_workers), :return) { Native::Recorder.child_text(nil) }
      end

      # Pitchfork's workers come from a mold, which a sibling forks.
      def mold(owner)
        return false unless owner.method_defined?(:spawn_worker) || owner.private_method_defined?(:spawn_worker)

        Integrations.follow(owner.instance_method(:spawn_worker), :call, :return) do |event|
          event.event == :call ? child_is(Puma.first_argument(event)) : Native::Recorder.child_text(nil)
        end
      end

      def child_is(worker)
        Native::Recorder.child_text("tag.worker=#{worker.nr}")
      end
    end
  end
end
