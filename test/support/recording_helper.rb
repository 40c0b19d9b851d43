# frozen_string_literal: true

require "sdb"
require "sdb/open"
require "tmpdir"

# Real recordings of this process.
module RecordingHelper
  def setup
    super
    @dir = Dir.mktmpdir("sdb-recording")
  end

  def teardown
    Sdb.stop
    FileUtils.rm_rf(@dir)
    super
  end

  def start(**options)
    recorder = Sdb.start(dir: @dir, ring: 8 << 20, max_cpu: 0, **options)
    assert_predicate recorder, :running?, recorder.reason
    recorder
  end

  # Profile of what the block did. finished: waits for nothing that still runs.
  def record(**options)
    start(**options)
    yield
    Sdb.open(Sdb.stop)
  end

  # All spans of a profile, by begin.
  def spans_of(profile, **filters)
    profile.spans(**filters).spans.sort_by(&:start_ns)
  end

  # { name => span }
  def spans_by_name(profile)
    spans_of(profile).to_h { |span| [span.name, span] }
  end

  # { name => name of its parent or nil }
  def parents(profile)
    native = profile.send(:data).native
    rows = native.spans_find({ tags: [], min_ns: 0, from: 0 }).map { |number| native.span_row(number) }
    rows.to_h { |row| [row[:name], row[:parent] && native.span_name(row[:parent])] }
  end

  # CPU time of this thread, however busy the machine is.
  def burn(seconds)
    finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
    nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
  end

  # Runs the block in a forked child and returns what it returned.
  def in_child
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      result = begin
        yield
      rescue Exception => e # rubocop:disable Lint/RescueException
        e.full_message
      end
      writer.write(Marshal.dump(result))
      writer.close
      exit!(0)
    end
    writer.close
    answer = reader.read
    Process.wait(pid)
    assert_predicate $?, :success?
    Marshal.load(answer)
  end
end
