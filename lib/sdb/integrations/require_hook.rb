# frozen_string_literal: true

# Asks after each file that is loaded whether something came that sdb follows. An alias chain, as RubyGems, Bootsnap and
# Zeitwerk do it: a prepended module would go round in circles with theirs.
module Kernel
  unless private_method_defined?(:require_without_sdb)
    alias_method :require_without_sdb, :require
    private :require_without_sdb

    def require(path)
      loaded = require_without_sdb(path)
      ::Sdb::Integrations.check if loaded
      loaded
    end
    private :require
  end
end
