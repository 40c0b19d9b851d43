# frozen_string_literal: true

# A Rack app to be killed: each path keeps a thread of the server where a test knows it to be.
class Shop
  def call(env)
    case env["PATH_INFO"]
    when "/spin" then spin
    when "/nap" then nap
    when "/leak" then leak
    end
    [200, { "content-type" => "text/plain" }, ["ok"]]
  end

  def spin
    x = 0
    loop { x += 1 }
  end

  def nap = rest

  def rest = sleep

  def leak
    kept = []
    loop { kept << take_memory.tap { sleep 0.002 } }
  end

  def take_memory = "x" * (1 << 20)
end

run Shop.new
