# frozen_string_literal: true

require "rake"
require "shellwords"
require_relative "../sdb"
require "#{Sdb::LIB}/sdb/cli"

module Sdb
  # The questions of the command line as rake tasks: there by themselves in a Rails app, by `require "sdb/tasks"`
  # elsewhere. What stands in the brackets behind the named arguments goes to the command as it is:
  #
  #   rake sdb:slow
  #   rake 'sdb:slow[--last 10m --limit 5]'
  #   rake 'sdb:request[5f3c9a2e]'
  #   rake 'sdb:flamegraph[-o tmp/flame.html --endpoint PostsController#index]'
  #   rake 'sdb:export[collapsed, -o tmp/stacks.txt]'
  module Tasks
    extend ::Rake::DSL

    # Ends rake with the command's status when it could not answer.
    #: (*String?) -> void
    def self.run(command, *words)
      status = CLI.run([command, *words.compact.flat_map { |text| Shellwords.split(text) }])
      $stdout.flush
      exit(status) unless status.zero?
    end

    namespace :sdb do
      desc "The slowest requests and jobs in the logs: sdb:slow[--last 10m]"
      task(:slow) { |_, args| Tasks.run("slow", *args.extras) }

      desc "One request or job, millisecond by millisecond"
      task(:request, [:id]) { |_, args| Tasks.run("request", args[:id], *args.extras) }

      desc "Where the time went, as one HTML file: sdb:flamegraph[-o FILE]"
      task(:flamegraph) { |_, args| Tasks.run("flamegraph", *args.extras) }

      desc "The profile in the format of another tool: sdb:export[collapsed, -o FILE]"
      task(:export, [:format]) { |_, args| Tasks.run("export", args[:format], *args.extras) }
    end
  end
end
