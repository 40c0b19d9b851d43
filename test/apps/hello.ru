# frozen_string_literal: true

# A bare Rack app: what it does is said by the path.
class Hello
  def call(env)
    case env["PATH_INFO"]
    when "/ok" then text("ok")
    when %r{\A/items/\d+\z} then text("item")
    when "/sleep" then sleep(0.12) && text("slept")
    when "/wait" then wait
    when "/raise" then raise ArgumentError, "on purpose"
    when "/missing" then [404, { "content-type" => "text/plain" }, ["no"]]
    when "/stream" then [200, { "content-type" => "text/plain" }, Slow.new]
    when "/leak" then throw_away
    when "/pid" then text(Process.pid.to_s)
    else text(env["PATH_INFO"])
    end
  end

  # Two seconds, most of it asleep, in pieces.
  def wait
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 2
    while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
      sleep 0.05
      2000.times { |n| n.to_s }
    end
    text("waited")
  end

  def text(body) = [200, { "content-type" => "text/plain" }, [body]]

  # A body that takes its time, as streamed reports do.
  class Slow
    def each
      3.times do |n|
        sleep 0.05
        yield "part #{n}\n"
      end
    end
  end

  # A body that the server cannot read to its end.
  def throw_away
    body = Enumerator.new { |_| raise IOError, "broken body" }
    [200, { "content-type" => "text/plain" }, body]
  end
end

run Hello.new
