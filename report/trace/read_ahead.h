// ReadAhead: reads, decompresses and decodes blocks of events on threads of its own, ahead of
// the one that wants them, in about the order in which it will.
//
//   consumer   the thread that calls Take(): each block of each stream once, those of a stream
//              in their order
//   workers    read_ahead threads; they only call const functions of the reader
//
// A block is wanted when the events of the one before it in its stream are used up, that
// is at about the time at which that was written. That is the order of the plan. What is not
// ready when it is wanted the consumer waits for, or does itself when no worker has begun it: so
// a wrong guess costs time and nothing else, and nobody waits for room.
//
// What the consumer gets does not depend on the number of workers: damage that they met
// is in the block, and noted by whoever takes it.
//
// Memory: blocks that wait to be taken, at most kAheadBytes and one a worker.

#ifndef MEMTRACE_REPORT_TRACE_READ_AHEAD_H_
#define MEMTRACE_REPORT_TRACE_READ_AHEAD_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "report/trace/block_payload.h"
#include "report/trace/event_block.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

class ReadAhead {
 public:
  // `workers` 0: every block is read when it is taken.
  ReadAhead(const TraceReader* reader, unsigned workers);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Before the first Take(): of each stream, blocks before this one will not be asked for.
  void Skip(const std::vector<size_t>& first);

  // Puts block `block` of stream `stream` in the place of `*out`, whose buffers are used again.
  // Throws what the worker threw, which is std::bad_alloc.
  void Take(size_t stream, size_t block, EventBlock* out);

  // The consumer's own sum over all streams, of which there may be very many: of the spans that it
  // has come to.
  void CountUsed(uint64_t content_bytes) { used_bytes_ += content_bytes; }
  uint64_t used_bytes() const { return used_bytes_; }

 private:
  static constexpr size_t kAheadBytes = size_t{8} << 20;  // of content
  // No writer makes larger blocks than this. One may decode to very much: it is left to the
  // consumer, so that there is one of them at a time.
  static constexpr size_t kLargestAhead = size_t{4} << 20;
  static constexpr size_t kSpareBlocks = 4;

  enum class State : uint8_t { kWanted, kBegun, kReady, kTaken };
  struct Job {
    uint64_t wanted_ticks;
    uint32_t stream, block;
    State state = State::kWanted;
    std::unique_ptr<EventBlock> result;
    std::exception_ptr failure;
  };

  const BlockRef& RefOf(const Job& job) const {
    return reader_->streams()[job.stream].blocks[job.block];
  }
  void Read(const Job& job, BlockPayload* payload, EventBlock* block) const;
  void Work();
  void StartWorkers();

  const TraceReader* const reader_;
  unsigned wanted_workers_ = 0;           // that are not started yet
  std::vector<Job> jobs_;                 // in the order of the plan
  std::vector<std::vector<uint32_t>> job_of_;  // by stream and block
  BlockPayload payload_;                  // the consumer's
  uint64_t used_bytes_ = 0;               // the consumer's

  std::mutex mutex_;  // of all that follows, and of the states and results in jobs_
  std::condition_variable work_;   // there is room, or the end
  std::condition_variable ready_;  // a block that the consumer waits for
  size_t next_ = 0;                // no job before it is kWanted
  size_t ahead_bytes_ = 0;         // of jobs that are kBegun or kReady
  bool stop_ = false;
  std::vector<std::unique_ptr<EventBlock>> spare_;
  std::vector<std::thread> workers_;
};

// The number of threads that --jobs 0 means: as many as there are processors for this process.
unsigned DefaultJobs();

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_READ_AHEAD_H_
