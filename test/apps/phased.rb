# frozen_string_literal: true

# Puma's newest releases preload by default, which rules a phased restart out.
preload_app! false
