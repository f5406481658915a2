// KeptRecords: metadata that a reader needs for as long as there are events of its subject, where
// the trace may lose it: in a flight recorder whose room for what is kept for ever is used up, or
// on a disk that is full. Of such a block a copy is kept, and written again when older blocks were
// given up, or when blocks can be written again.
//
// Copies: what a block was made of, a module, may be unloaded by another thread meanwhile.
//
// Threads: any. No lock; memory of our own, which is not given back. A block that there is no
// memory for is written once, as if it were not kept.

#ifndef MEMTRACE_PRELOAD_KEPT_RECORDS_H_
#define MEMTRACE_PRELOAD_KEPT_RECORDS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/trace_file.h"

namespace memtrace {

class KeptRecords {
 public:
  // Appends `bytes` of records as one metadata block. `module`: the instance that they are of, and
  // with which they go; 0: they stay.
  void Append(TraceFile& file, const void* records, size_t bytes, uint16_t module);

  // The same of records that events to come do not need: once in the trace is enough.
  void AppendOnce(TraceFile& file, const void* records, size_t bytes);

  // Writes again what is not in the file, or will not be for long. The newest first; in a flight
  // recorder no more than a quarter of a segment holds, or it would keep nothing else: of the
  // threads that call this for a segment the first does it.
  void TellAgain(TraceFile& file);

  // The module was unloaded: its records need not be told again, once they were.
  void Drop(uint16_t module);

  // To be called in a fork child: they were of its parent's trace.
  void Forget();

 private:
  struct Block;
  struct Room;

  void* RoomFor(size_t bytes);
  void Keep(const void* records, size_t bytes, uint16_t module, bool needed, uint32_t told);
  void NoteLost(TraceFile& file);

  std::atomic<Block*> newest_{nullptr};
  std::atomic<Room*> room_{nullptr};
  // Flight recorder: the segments that were begun when somebody took on TellAgain(). 0: nobody, or
  // something could not be written since.
  std::atomic<uint32_t> told_for_{0};
};

inline constinit KeptRecords g_kept_records;

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_KEPT_RECORDS_H_
