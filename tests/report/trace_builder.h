// TraceBuilder: traces from a script that reads like what the program did.
//
//   TraceBuilder trace;
//   auto& main = trace.Thread(1, 4242, "main");
//   main.At(1000).Node(1, 0x401000).Malloc(0x10010, 100, 1);
//   main.At(2000).Free(0x10010);
//   trace.End(0, 3000);
//   std::string bytes = trace.Build();      or   trace.WriteTo(path);
//
// Times are nanoseconds since the process started; a tick of the event clock is a
// nanosecond (or what SetClock says). Events go to the file when a thread flushes:
// by Flush(), or at the end in the order of the threads. What a test wants to get
// wrong it can: Word() writes anything, and Build()'s bytes are the test's.

#ifndef MEMTRACE_TESTS_REPORT_TRACE_BUILDER_H_
#define MEMTRACE_TESTS_REPORT_TRACE_BUILDER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/event_words.h"
#include "format/record_encoder.h"
#include "format/records.h"
#include "format/trace_format.h"

namespace memtrace::report {

class TraceBuilder;

class ThreadScript {
 public:
  ThreadScript(TraceBuilder* trace, uint32_t serial) : trace_(trace), serial_(serial) {}

  // A time stamp: what follows is not earlier, what came before not later.
  ThreadScript& At(uint64_t time_ns);

  // A node of a stack: the frame at `pc`, called by the one of slot `parent`.
  ThreadScript& Node(uint32_t slot, uint64_t pc, uint32_t parent = 0, uint32_t instance = 0);
  // Nodes for a whole stack, outermost first; the slots are chosen. Returns the innermost.
  uint32_t Stack(std::initializer_list<uint64_t> pcs);

  ThreadScript& Malloc(uint64_t address, uint32_t size, uint32_t slot = 0,
                       uint32_t waste = format::kUnknownWaste);
  ThreadScript& Calloc(uint64_t address, uint32_t size, uint32_t slot = 0,
                       uint32_t waste = format::kUnknownWaste);
  ThreadScript& Wide(format::AllocFunction function, uint64_t address, uint64_t requested,
                     uint64_t usable = 0, uint32_t slot = 0, uint32_t alignment_log2 = 0,
                     uint8_t flags = 0);
  ThreadScript& Free(uint64_t address);
  ThreadScript& FreeWithStack(uint64_t address, uint32_t slot);
  // Intent and result. `address` 0: it failed.
  ThreadScript& Realloc(uint64_t old_address, uint64_t address, uint32_t size, uint32_t slot = 0,
                        uint32_t waste = format::kUnknownWaste);
  ThreadScript& ReallocIntent(uint64_t old_address);
  ThreadScript& ReallocResult(uint64_t address, uint32_t size, uint32_t slot = 0,
                              uint32_t waste = format::kUnknownWaste);

  ThreadScript& Mmap(uint64_t address, uint64_t length, uint32_t slot = 0,
                     std::string_view file = "");  // anonymous without a file
  ThreadScript& Munmap(uint64_t address, uint64_t length, uint32_t slot = 0);
  ThreadScript& MunmapFailed(uint64_t address, uint64_t length);
  ThreadScript& Mremap(uint64_t old_address, uint64_t old_length, uint64_t new_address,
                       uint64_t new_length, uint32_t slot = 0,
                       uint32_t flags = 1, bool told = false);  // by a Munmap() before it
  ThreadScript& Brk(uint64_t old_break, uint64_t new_break, uint32_t slot = 0);
  ThreadScript& HeapGrowth(uint64_t old_break, uint64_t new_break, uint32_t slot = 0);
  ThreadScript& ArenaGrowth(uint64_t base, uint64_t bytes, uint32_t slot = 0);
  ThreadScript& Shmat(uint64_t address, uint64_t length, int shmid, uint32_t slot = 0);
  ThreadScript& Shmdt(uint64_t address, uint32_t slot = 0);
  ThreadScript& Usage(uint64_t minor, uint64_t major, uint64_t rss, uint64_t tool_minor = 0);
  ThreadScript& Name(std::string_view name);

  ThreadScript& Word(uint64_t word);
  ThreadScript& Extended(format::ExtendedType type, const std::vector<uint64_t>& words,
                         std::string_view text = "");

  // Ends the block: its header is of this time, 0 the latest stamp of any thread.
  ThreadScript& Flush(uint64_t time_ns = 0);
  // The events since the last flush stay in a ring. `committed_bytes` UINT32_MAX: all.
  // `late_ns`: the block's header is of just before, and has the clock so much later.
  ThreadScript& LeaveInRing(uint32_t committed_bytes = UINT32_MAX, uint64_t late_ns = 0);
  // The next block says that as many events before it were dropped.
  ThreadScript& Dropped(uint32_t events);
  // The next block was written for a thread that went on: format::kBlockEarly.
  ThreadScript& Early();
  // The next block gets a number as if `blocks` before it had been lost.
  ThreadScript& SkipBlocks(uint32_t blocks);

  uint32_t serial() const { return serial_; }
  const std::vector<uint64_t>& pending() const { return words_; }

 private:
  friend class TraceBuilder;
  ThreadScript& Short(format::EventKind kind, uint64_t address, uint32_t size, uint32_t slot,
                      uint32_t waste);

  TraceBuilder* trace_;
  uint32_t serial_;
  uint32_t sequence_ = 0;
  uint32_t next_slot_ = 1000;
  uint32_t dropped_ = 0;
  uint32_t flags_ = 0;
  uint64_t begun_ns_ = 0;  // of the open block
  std::vector<uint64_t> words_;
};

class TraceBuilder {
 public:
  struct Options {
    uint32_t pid = 4242;
    uint64_t trace_id = 0x1234567890abcdef;
    uint32_t file_flags = 0;
    bool process_record = true;
    format::ClockKind clock = format::ClockKind::kMonotonicNs;
    uint64_t ticks_per_us = 1000;  // of the event clock
    std::vector<std::string> command = {"./app", "--fast"};
    std::string executable = "/usr/bin/app";
    format::AllocatorKind allocator = format::AllocatorKind::kGlibc;
    format::StackMode stack_mode = format::StackMode::kAll;
    format::StampRule stamp_rule = format::StampRule::kUnknown;
    uint64_t sample_bytes = 0;
    uint64_t page_bytes = 4096;
    uint64_t start_realtime_ns = 1'700'000'000'000'000'000;
    format::Codec event_codec = format::Codec::kRaw;  // or kWords
  };
  static constexpr uint64_t kStartNs = 5'000'000'000;  // CLOCK_MONOTONIC at the start
  static constexpr uint64_t kStartTicks = 70'000'000'000;

  TraceBuilder() : TraceBuilder(Options()) {}
  explicit TraceBuilder(const Options& options);
  TraceBuilder(const TraceBuilder&) = delete;

  // The thread with this serial; the first call with a tid writes its record.
  ThreadScript& Thread(uint32_t serial, uint32_t tid = 0, std::string_view name = "",
                       uint64_t first_ns = 0);

  TraceBuilder& Module(uint32_t instance, uint32_t flags, uint64_t start, uint64_t end,
                       uint64_t bias, std::string_view path, std::string_view build_id = "",
                       uint64_t time_ns = 0);
  TraceBuilder& ModuleUnload(uint32_t instance, uint64_t time_ns);
  TraceBuilder& MemoryMap(format::MapReason reason, std::string_view text, uint64_t time_ns = 0,
                          uint64_t tool_bytes = 0);
  TraceBuilder& End(int exit_status, uint64_t time_ns,
                    format::EndReason reason = format::EndReason::kExit, bool doubtful = false);
  // The last words before an exec whose failure is told, and that of the one which began then.
  TraceBuilder& ExecBegins(uint64_t time_ns);
  TraceBuilder& ExecFailed(uint64_t begin_ns);
  // `time_ns`: since the start; 0: the record ends before it.
  TraceBuilder& ObservedEnd(format::ObservedEndKind kind, int status_or_signal,
                            uint64_t time_ns = 0);
  TraceBuilder& Counter(std::string_view name, uint64_t value);
  TraceBuilder& Note(std::string_view text);
  TraceBuilder& Stopped(format::RecordingStop why, int error, uint64_t time_ns);
  // The status area, of which the test filled the rest. In a packed file there is none.
  TraceBuilder& Status(format::StatusArea area);
  // Any record.
  TraceBuilder& Record(const std::function<void(format::RecordEncoder&)>& fill);

  // Puts bytes between blocks; a multiple of 64.
  TraceBuilder& Gap(size_t bytes, char fill = 0);
  TraceBuilder& Block(format::BlockHeader header, std::string_view payload);

  // Flushes what is pending and returns the file. May be called again after more events.
  std::string Build();
  // Throws away nothing: the file so far, without what is pending.
  const std::string& bytes() const { return bytes_; }
  bool WriteTo(const std::string& path);

  uint64_t TicksAt(uint64_t time_ns) const {
    return kStartTicks + time_ns * options_.ticks_per_us / 1000;
  }

 private:
  friend class ThreadScript;
  format::BlockHeader HeaderAt(format::BlockKind kind, uint64_t time_ns) const;
  void FlushRecords();

  Options options_;
  std::string bytes_;
  std::string records_;  // of the open metadata block
  std::deque<ThreadScript> threads_;
  uint64_t latest_ns_ = 0;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_TRACE_BUILDER_H_
