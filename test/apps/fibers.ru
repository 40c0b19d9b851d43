# frozen_string_literal: true

# For servers that run each request in a fiber: waits in between, and computes in a method that its path names.
module Work
  %w[a b c].each do |name|
    module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
      def self.spin_#{name}
        finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.02
        nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
      end
    RUBY
  end
end

run(lambda do |env|
  name = env["PATH_INFO"][%r{\A/([abc])\z}, 1]
  next [200, { "content-type" => "text/plain" }, ["hello"]] unless name

  Sdb.tag(name: name) do
    2.times do
      sleep 0.05
      Work.public_send(:"spin_#{name}")
    end
    seen = Sdb.tags
    [200, { "content-type" => "text/plain" }, [seen.slice(:name).inspect]]
  end
end)
