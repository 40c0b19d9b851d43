# frozen_string_literal: true

module Sdb
  # Finds the frameworks and servers of the app when it loads them, and arranges what makes their work spans. Used only when
  # the environment starts the recording; nothing of it is loaded by `require "sdb"`.
  #
  # How it does so without standing in the app's way is told, for each, in integrations/README.md.
  module Integrations
    # Class or module of the app => file and module here. When it is complete, that module's arrange is called with it and says
    # whether that was enough: some are opened more than once.
    ALL = {
      "ActiveSupport::Notifications" => %w[active_job ActiveJob],
      "Pitchfork::HttpServer" => %w[unicorn Unicorn],
      "Puma::Cluster" => %w[puma Puma],
      "Puma::Cluster::Worker" => %w[puma Puma],
      "Rack::Builder" => %w[rack/builder Rack::Builder],
      "Rails::Railtie" => %w[rails/railtie Rails::Railtie],
      "Rake::Task" => %w[rake Rake],
      "Sidekiq" => %w[sidekiq Sidekiq],
      "Unicorn::HttpServer" => %w[unicorn Unicorn],
      "Unicorn::Worker" => %w[unicorn Unicorn]
    }.freeze

    NAME = Module.instance_method(:name) # a class may have a `name` of its own
    private_constant :NAME

    @waiting = ALL.dup
    @open = []

    class << self
      # Arranges what is loaded and watches for the rest. Idempotent.
      #: () -> void
      def arrange
        return if @opening

        @opening = TracePoint.new(:class) { |event| opened(event.self) }
        @closing = TracePoint.new(:end) { |event| closed(event.self) } unless mjit?
        @closing&.enable # YJIT forgets its code when this event is wanted for the first time: now it has none
        @closing&.disable
        ALL.each_key { |name| (found = loaded(name)) && take(name, found) }
        @opening.enable
      end

      # Names of what was met and arranged.
      #: () -> Array[String]
      def arranged = ALL.keys - @waiting.keys

      # Calls the block at these events (:call, :return) of this one method. Its own frames are gone when the method goes
      # on, nothing is put in its place, and all other code runs as before.
      # @return [bool] whether that is possible: not with a method that is written in C
      #: (UnboundMethod, *Symbol) { (TracePoint) -> void } -> bool
      def follow(method, *events)
        TracePoint.new(*events) do |event|
          yield event
        rescue StandardError => e
          complain(method.name, e)
        end.enable(target: method)
        true
      rescue ArgumentError
        false
      end

      private

      # Of Ruby 3.1 and 3.2: it switches itself off for ever when somebody wants to know of ends.
      def mjit? = defined?(RubyVM::MJIT) && RubyVM::MJIT.respond_to?(:enabled?) && RubyVM::MJIT.enabled?

      # A class body begins, anywhere in the process: 0.2 us.
      def opened(mod)
        name = NAME.bind_call(mod)
        try_open_ones unless @closing || @open.empty? || name.nil? # `class << self` is still inside
        return unless @waiting.key?(name)

        @open |= [name]
        @closing.enable if @closing && !@closing.enabled?
      end

      # Without ends: the next beginning of any class has to do.
      def try_open_ones
        @open.each { |name| (mod = loaded(name)) && take(name, mod) }
        @open &= @waiting.keys
      end

      def closed(mod)
        name = NAME.bind_call(mod)
        return unless @open.delete(name)

        @closing.disable if @open.empty?
        take(name, mod)
        @opening.disable if @waiting.empty?
      end

      # An integration that fails is left out; the app goes on.
      def take(name, mod)
        file, const = @waiting[name]
        return unless file

        require_relative "integrations/#{file[%r{\A[^/]+}]}"
        require_relative "integrations/#{file}"
        @waiting = @waiting.except(name) if Sdb.const_get(const).arrange(mod)
      rescue StandardError, LoadError => e
        @waiting = @waiting.except(name)
        complain(name, e)
      end

      # The module of that name, without loading anything: defined? would find what is only to be autoloaded.
      def loaded(name)
        name.split("::").inject(Object) do |scope, part|
          break unless scope.const_defined?(part, false) && !scope.autoload?(part, false)

          scope.const_get(part, false)
        end
      end

      def complain(what, error)
        warn "sdb: #{what} cannot be followed: #{error.class}: #{error.message.lines.first&.chomp}"
      end
    end
  end
end
