// Where a thread compresses its ring before it writes it (format/word_codec.h).
//
// Not in place: the ring must hold its events until the block is in the file. Not one for
// each thread: it would double what a thread costs, and is needed for some 15 us in every
// 5,000 events. Not on the stack, which is the program's. So there are a few for the process,
// made when first needed; a thread that finds them all lent writes its words as they are.
//
// Threads: any, also a handler that interrupts a borrower. No lock, no waiting.

#ifndef MEMTRACE_PRELOAD_SPOOL_BUFFERS_H_
#define MEMTRACE_PRELOAD_SPOOL_BUFFERS_H_

#include <cstdint>

#include "format/word_codec.h"
#include "preload/event_ring.h"

namespace memtrace {

struct SpoolBuffer {
  uint64_t table[format::kWordTable];
  uint8_t bytes[format::EncodedWordsRoom(EventRing::kBytes / sizeof(uint64_t))];
};

// One, or none, for the life of the object.
class BorrowedSpoolBuffer {
 public:
  BorrowedSpoolBuffer();
  ~BorrowedSpoolBuffer();
  BorrowedSpoolBuffer(const BorrowedSpoolBuffer&) = delete;
  BorrowedSpoolBuffer& operator=(const BorrowedSpoolBuffer&) = delete;

  SpoolBuffer* get() const { return buffer_; }

 private:
  SpoolBuffer* buffer_ = nullptr;
  int place_ = -1;
};

// Fork child: takes back what threads had borrowed that are not here.
void ReturnSpoolBuffersOfOtherThreads();

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_SPOOL_BUFFERS_H_
