// TraceFile: the file this process spools to.
//
// No descriptor is kept, because programs close and reuse all of them: each
// access opens the file by its absolute path and checks that it is still the file
// that was created: device, inode, and the trace id in its header, for the number
// of a deleted inode is soon given out again. Space is given out by one atomic
// counter, so threads never write to the same place and need no lock. A write
// that fails leaves a gap, which readers step over.
//
// When the program is about to give up the right to open it, MakeReserve() maps a part of it
// that is still empty (trace_reserve.h); what is written from then on goes there.
//
// Threads: Reserve/Append may run on any thread at any time after Create().

#ifndef MEMTRACE_PRELOAD_TRACE_FILE_H_
#define MEMTRACE_PRELOAD_TRACE_FILE_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "format/records.h"
#include "format/trace_format.h"
#include "preload/text.h"
#include "preload/trace_reserve.h"

namespace memtrace {

class TraceFile {
 public:
  // Creates `pattern` with %e, %p and %t expanded, 0600, exclusively, never
  // through a link; a name that is taken gets .1, .2, ... before its extension.
  // Returns 0 or -errno.
  long Create(const char* pattern, const char* working_directory, const char* program, int pid,
              uint64_t start_ns, const format::FileHeader& header);

  // Appends one block. False when it could not be written: the block is lost.
  bool Append(format::BlockHeader& header, const void* payload);

  // Appends a ring block with room for `ring_bytes` (header included) and maps
  // it. Null when the space or the shared mapping is refused.
  void* AppendRing(size_t ring_bytes, uint32_t thread);

  // Gives back a ring that AppendRing() mapped.
  void ReleaseRing(void* ring, size_t ring_bytes);

  // While the file can still be opened. 0, also when there is one already; or -errno.
  long MakeReserve();
  const TraceReserve& reserve() const { return reserve_; }
  // RLIMIT_AS is about to become this.
  void LimitAddressSpace(uint64_t bytes);

  // A byte limit for the whole file; 0 for none.
  void set_max_bytes(uint64_t bytes) { max_bytes_ = bytes; }

  // From now on nothing is written: the file is another process's.
  void Forsake() { path_.Clear(); }

  uint64_t written_bytes() const { return end_.load(std::memory_order_relaxed); }
  // Why the last Append failed: errno and our own reason. 0 when none has.
  long last_error() const { return last_error_.load(std::memory_order_relaxed); }
  format::RecordingStop last_stop() const { return last_stop_.load(std::memory_order_relaxed); }
  const char* path() const { return path_.c_str(); }

 private:
  long OpenVerified();
  bool Refuse(format::RecordingStop why, long error);

  bool WriteAt(long fd, uint64_t offset, format::BlockHeader& header, const void* payload);

  Text<4352> path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  uint64_t trace_id_ = 0;
  std::atomic<uint64_t> end_{0};
  TraceReserve reserve_;
  std::atomic<bool> making_reserve_{false};
  uint64_t max_bytes_ = 0;
  std::atomic<long> last_error_{0};
  std::atomic<format::RecordingStop> last_stop_{};
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_TRACE_FILE_H_
