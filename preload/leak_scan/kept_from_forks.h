// KeptFromForks: memory that the program keeps from its fork children (MADV_DONTFORK). The copy
// that a scan is done by is one: without that memory all that only it points to would be lost. V8
// maps its heap so.
//
// Lend() lets such memory be forked like any other until GiveBack(). Where the process goes on, no
// thread should run meanwhile: memory that comes in the place of such is none of it. Which memory
// it is the kernel says (/proc/self/smaps), and it should be asked only where the program has
// called madvise() so: the kernel looks at every page for that.
//
// Only plain memory is lent: private, readable, of no file and no device, in no huge pages of their
// own. And nothing where any memory is pinned for a device, which is what the advice was made for:
// a fork would copy it all, or before Linux 5.10 part the program from its device. Some drivers
// count what they pin as locked: so more may not be locked than the mappings that are.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_KEPT_FROM_FORKS_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_KEPT_FROM_FORKS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "preload/leak_scan/scan_job.h"
#include "preload/own_memory.h"

namespace memtrace {

// The program has kept memory from its children at some time.
inline constinit std::atomic<bool> g_keeps_from_forks{false};

class KeptFromForks {
 public:
  KeptFromForks() = default;
  ~KeptFromForks();  // gives it back
  KeptFromForks(const KeptFromForks&) = delete;
  KeptFromForks& operator=(const KeptFromForks&) = delete;

  // Once. What is none of the tracer's own; the list of it becomes the tracer's. False: not all of
  // it could be lent.
  bool Lend(ScanJob& job);
  void GiveBack();
  size_t size() const { return size_; }  // mappings that are lent

 private:
  static constexpr size_t kMost = 1 << 16;

  // Lists what may be lent. False: that is not all.
  bool Find(const ScanJob& job, char* buffer);

  OwnRange* ranges_ = nullptr;
  size_t size_ = 0;
};

// Takes the lines of /proc/self/smaps, one after the other.
class SmapsFlags {
 public:
  // What the mapping at begin() and end() turns out to be: kept from fork children ("dc") and plain
  // memory, or kept from them and private data of another kind; or it is not known, or neither.
  enum What { kNeither, kPlain, kOther };
  What Take(std::string_view line);
  uintptr_t begin() const { return begin_; }
  uintptr_t end() const { return end_; }
  // Of all mappings until now: bytes of those that are locked.
  uint64_t locked_bytes() const { return locked_bytes_; }

 private:
  uintptr_t begin_ = 0, end_ = 0;
  bool is_data_ = false;  // private, and can be read
  bool has_file_ = false;
  uint64_t locked_bytes_ = 0;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_KEPT_FROM_FORKS_H_
