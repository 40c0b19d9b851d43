# frozen_string_literal: true

require "cgi/escape"
require "digest"

module Sdb
  module Report
    # One self-contained HTML file: template, styles and scripts from assets/, and the data.
    #
    # The page may do nothing but run this very script and use this very style: the policy names both by
    # hash, so text that got into the page by mistake can neither run nor load anything, and Trusted Types
    # turn every attempt to parse text as HTML into an error.
    module Page
      ASSETS = File.expand_path("assets", __dir__)
      private_constant :ASSETS

      module_function

      # Writes the page to +io+.
      #
      # title:: what the browser's tab shows
      # body:: name of the HTML fragment in assets/
      # styles, scripts:: names of files in assets/, in order
      # payload:: text of the data element (see Payload), which cannot hold a "<"
      #: (IO io, title: String, body: String, styles: Array[String], scripts: Array[String], payload: String) -> void
      def write(io, title:, body:, styles:, scripts:, payload:)
        style = styles.map { |name| asset(name) }.join
        script = "(() => {\n\"use strict\";\n#{scripts.map { |name| asset(name) }.join}})();\n"
        refuse_end_tags(style, script, payload)
        io << <<~HEAD
          <!DOCTYPE html>
          <html lang="en">
          <head>
          <meta charset="utf-8">
          <meta http-equiv="Content-Security-Policy" content="#{policy(style, script)}">
          <meta name="viewport" content="width=device-width, initial-scale=1">
          <meta name="color-scheme" content="light dark">
          <meta name="generator" content="sdb">
          <title>#{CGI.escapeHTML(clean(title))}</title>
        HEAD
        io << "<style>" << style << "</style>\n</head>\n<body>\n" << asset(body)
        io << "<script type=\"application/octet-stream\" id=\"data\">" << payload << "</script>\n"
        io << "<script>" << script << "</script>\n</body>\n</html>\n"
        nil
      end

      # Text that is valid UTF-8 whatever it was: names come out of other people's memory.
      #: (String text) -> String
      def clean(text)
        text = text.to_s
        return text if text.encoding == Encoding::UTF_8 && text.valid_encoding?

        text = text.dup.force_encoding(Encoding::UTF_8) if text.encoding == Encoding::BINARY
        text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub
      end

      # For a process that is about to lose the right to read them.
      #: () -> void
      def load_assets
        @texts = Dir.children(ASSETS).to_h { |name| [name, File.read(File.join(ASSETS, name), encoding: Encoding::UTF_8)] }
      end

      # Without indentation and the comments that have a line of their own: the shell is part of every report.
      # No asset has a string that goes over several lines.
      def asset(name)
        text = (@texts && @texts[name]) || File.read(File.join(ASSETS, name), encoding: Encoding::UTF_8)
        text = text.gsub(%r{^/\*.*?\*/\n}m, "") if name.end_with?(".css")
        text.gsub(%r{^\s*(?://.*)?\n}, "").gsub(/^ +/, "")
      end

      def policy(style, script)
        "default-src 'none'; script-src '#{hash(script)}'; style-src '#{hash(style)}'; " \
          "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
      end

      def hash(text)
        "sha256-#{Digest::SHA256.base64digest(text)}"
      end

      def refuse_end_tags(style, script, payload)
        return unless style.match?(%r{</style}i) || script.match?(%r{</script}i) || payload.include?("<")

        raise ArgumentError, "an inlined text would end its own element"
      end
      private_class_method :asset, :policy, :hash, :refuse_end_tags
    end
  end
end
