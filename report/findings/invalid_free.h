// What is known of a free, or a realloc, of what was no live block at that time.

#ifndef MEMTRACE_REPORT_FINDINGS_INVALID_FREE_H_
#define MEMTRACE_REPORT_FINDINGS_INVALID_FREE_H_

#include <cstdint>
#include <vector>

#include "format/event_words.h"
#include "report/base/strong_id.h"

namespace memtrace::report {

// Invalid frees that tell the same story, from the same stacks. Times and
// addresses are of the first.
struct InvalidFree {
  enum class Kind : uint8_t {
    kFreedBefore,  // the block at the address was freed, and none allocated there since
    kInsideLive,   // the address lies in a live block, behind its begin
    kInsideFreed,  // the same of a block that was freed
  };
  // An instant of the story. A free has no stack here if its stack was not recorded
  // (MEMTRACE_FREE_STACKS).
  struct Moment {
    StackId stack;
    ThreadId thread;
    uint64_t time_ns = 0;
    bool by_realloc = false;
  };

  Kind kind = Kind::kFreedBefore;
  uint64_t times = 0;
  uint64_t address = 0;  // what was freed
  uint64_t offset = 0;   // of that, from the begin of the block
  uint64_t block_bytes = 0;
  format::AllocFunction function = format::AllocFunction::kMalloc;
  Moment allocated, freed, again;  // `freed`: nothing of a live block; `again`: the invalid one
};

struct InvalidFrees {
  std::vector<InvalidFree> stories;  // most times first, then by time
  uint64_t told = 0;                 // frees in these
  bool looked_for = false;           // the others are of blocks that the trace does not have
  uint64_t not_looked_for = 0;       // there are more than are looked for
  // Frees that looked like second ones and are in no story: an allocator that was not seen may have
  // given out a block there in between (FillUnseenAllocators()).
  uint64_t of_unseen_blocks = 0;
};

// A free for which the pass over the heap found no block: nobody can have allocated one
// at the address by then.
struct UnknownFree {
  uint64_t address = 0;
  uint64_t stream = 0;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_INVALID_FREE_H_
