# frozen_string_literal: true

# Jobs for Sidekiq: each spends its time in a method of its own, so that a profile tells whose it is.
require "sidekiq"

Sidekiq.configure_server { |config| config.logger.level = Logger::WARN }

class TaggedJob
  include Sidekiq::Job

  sidekiq_options retry: false

  # Each under its own tag, in which others nest.
  def perform(number)
    Sdb.tag(job: number, kind: number % 2) do
      3.times do |step|
        Sdb.tag(step: step) { Workers.public_send(:"work_#{number % 25}") }
      end
      next unless Sdb.auto? # nothing recorded, no tags

      Sdb.tags.except(:queue) == { job: number, kind: number % 2 } or raise "tags of another job: #{Sdb.tags}"
    end
    (Sdb.tags.keys - [:queue]).empty? or raise "tags left over: #{Sdb.tags}"
  end
end

class FailingJob
  include Sidekiq::Job

  sidekiq_options retry: false

  def perform
    Sdb.tag(failing: true) { raise ArgumentError, "on purpose" }
  end
end

# work_0 to work_24: all the same, but for their names.
module Workers
  25.times do |n|
    module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
      def self.work_#{n}
        finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.004
        nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
        sleep 0.004
      end
    RUBY
  end
end

# For the black box: one that takes all the memory it may have, one that waits meanwhile.
class HungryJob
  include Sidekiq::Job

  sidekiq_options retry: false

  def perform(report) = report.size.times { load_rows }

  def load_rows
    kept = []
    loop { kept << ("x" * (1 << 20)).tap { sleep 0.002 } }
  end
end

class PatientJob
  include Sidekiq::Job

  sidekiq_options retry: false

  def perform(_) = wait_for_it
  def wait_for_it = sleep
end
