# frozen_string_literal: true

require_relative "../test_helper"
require "support/case_helper"

# C19: what sdb needs is taken from it. The program runs on, and the status says what happened where that can be known.
class TestC19HurtRings < Minitest::Test
  include CaseHelper

  # HURT runs in the middle of work; then there is as much work again.
  def hurt(code, dir: @dir, ring: "4M", **options)
    result = program!(<<~RUBY, dir: dir, ring: ring, interval: "100us", **options)
      #{TOOLS}
      def before = 200.times { |i| burn(0.0005); [i].each { |x| x.to_s } }
      def after(seconds = 0.3) = (finish = now + seconds; (Thread.new { burn(0.001) }.join; burn(0.001)) while now < finish)
      before
      ring = Sdb.status[:ring]
      #{code}
      after
      puts "done=yes", "warnings=\#{Sdb.status[:warnings].join(";").tr(" ", "_")}."
      puts "stopped=\#{Sdb.stop.inspect.tr(" ", "_")}"
    RUBY
    assert_equal "yes", result.figures["done"], result.err
    result
  end

  def test_a_layout_that_is_not_proven_keeps_sdb_from_recording_and_says_why
    result = program!(<<~RUBY, with_sdb: false)
      require "sdb"
      require "sdb/native"
      native = Sdb.const_get(:Native)
      abort native.recorder_missing if native.recorder_missing
      testing = native.const_get(:Testing)
      testing.force_layout("cfp size", :table, 72)
      recorder = Sdb.start(dir: #{@dir.inspect})
      puts "running=\#{recorder.running?}", "state=\#{Sdb.status[:state]}", Sdb.status[:reason]
      puts [3, 1, 2].sort.inspect
    RUBY
    assert_equal({ "running" => "false", "state" => "disabled" }, result.figures)
    assert_includes result.out, "cfp size: table 72, measured"
    assert_includes result.out, "[1, 2, 3]"
    assert_match(/\Asdb: not recording: /, result.err)
    assert_empty Dir[File.join(@dir, "*.sdb")]
  end

  def test_the_directory_removed
    hurt('require "fileutils"; FileUtils.rm_rf(File.dirname(ring))', dir: File.join(@dir, "rings"))
  end

  def test_the_directory_made_unwritable
    result = hurt("File.chmod(0o500, File.dirname(ring))", dir: File.join(@dir, "rings"))
    File.chmod(0o700, File.join(@dir, "rings"))
    assert_includes names(log_of(result, dir: File.join(@dir, "rings"))), "Object#after"
  end

  def test_the_ring_deleted
    hurt("File.delete(ring)")
  end

  def test_the_ring_truncated
    result = hurt("File.truncate(ring, 0)")
    read_somehow(result)
  end

  def test_the_ring_cut_in_its_middle
    result = hurt("File.truncate(ring, File.size(ring) / 2)")
    read_somehow(result)
  end

  def test_the_ring_overwritten_with_zeros
    result = hurt('File.open(ring, "r+b") { |f| f.write("\\0" * f.size) }')
    read_somehow(result)
  end

  def test_the_ring_overwritten_with_noise
    result = hurt('File.open(ring, "r+b") { |f| f.write(Random.bytes(f.size)) }')
    read_somehow(result)
  end

  def test_a_directory_in_the_place_of_the_ring
    hurt("File.delete(ring); Dir.mkdir(ring)")
  end

  # The ring is truncated, so that its next writes need space, or a file size, that is not there.
  def test_a_file_size_limit
    result = hurt("File.truncate(ring, 0); Process.setrlimit(:FSIZE, 4096); after(1.5)")
    assert_match(/the_log_could_not_be_written:_File_too_large/, result.figures["warnings"])
  end

  def test_a_file_size_limit_from_the_beginning
    result = program!("puts \"state=\#{Sdb.status[:state]}\"; puts 'reason=' + Sdb.status[:reason].tr(' ', '_')", rlimit_fsize: 1 << 20)
    assert_equal "disabled", result.figures["state"]
    assert_match(/File_too_large/, result.figures["reason"])
  end

  def test_a_full_disk
    on_small_disk do |disk|
      result = hurt(<<~RUBY, dir: disk)
        File.truncate(ring, 0)
        begin
          File.open(File.join(File.dirname(ring), "filler"), "wb") { |f| loop { f.write("x" * 65_536); f.flush } }
        rescue Errno::ENOSPC
          nil
        end
        after(1.5)
      RUBY
      assert_match(/the_log_could_not_be_written:_No_space_left/, result.figures["warnings"])
    end
  end

  def test_a_disk_that_is_too_small_from_the_beginning
    on_small_disk do |disk|
      begin
        File.open(File.join(disk, "filler"), "wb") { |f| loop { f.write("x" * 65_536); f.flush } }
      rescue Errno::ENOSPC
        nil
      end
      result = program!("puts \"state=\#{Sdb.status[:state]}\", Sdb.status[:reason]", dir: disk, ring: "64M")
      assert_equal "disabled", result.figures["state"]
      assert_match(/No space left/, result.out)
    end
  end

  private

  # Part of it may still be there, but never a crash.
  def read_somehow(result)
    log_of(result).functions
  rescue Sdb::Error
    nil
  end

  def on_small_disk
    disk = File.join(@dir, "disk")
    Dir.mkdir(disk)
    skip "to mount a small disk needs root" unless Process.uid.zero?
    skip "this container lets nobody mount" unless system("mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", disk, err: File::NULL)
    begin
      yield disk
    ensure
      system("umount", disk)
    end
  end
end
