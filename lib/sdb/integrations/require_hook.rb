# frozen_string_literal: true

module Sdb
  module Integrations
    # Asks after each file that is loaded whether something came that sdb follows. A chain of methods, as RubyGems,
    # Bootsnap and Zeitwerk do it: a prepended module would go round in circles with theirs. Bundler puts Ruby's own
    # `require` back when it sets a bundle up, so the hook comes again after that.
    module RequireHook
      @reached = false

      class << self
        attr_writer :reached

        #: () -> void
        def arm
          install unless in_chain?
        end

        private

        # Others may have put theirs in front of ours: a call tells.
        def in_chain?
          @reached = false
          Kernel.instance_method(:require).bind_call(self, "rbconfig")
          @reached
        end

        def install
          original = Kernel.instance_method(:require)
          Kernel.define_method(:require) do |path|
            RequireHook.reached = true
            loaded = original.bind_call(self, path)
            if loaded
              Integrations.check
              RequireHook.arm if path.to_s.end_with?("bundler/setup")
            end
            loaded
          end
          Kernel.send(:private, :require)
        end
      end

      # Prepended to Bundler's singleton class.
      module Bundler
        def setup(...)
          super.tap { RequireHook.arm }
        end
      end
    end
  end
end
