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
// a fork would copy it all, or before Linux 5.10 part the program from its device.

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

  OwnRange* ranges_ = nullptr;
  size_t size_ = 0;
};

// Takes the lines of /proc/self/smaps, one after the other.
class SmapsFlags {
 public:
  // True: the mapping at begin() and end() is plain memory, and has the flag "dc".
  bool Take(std::string_view line);
  uintptr_t begin() const { return begin_; }
  uintptr_t end() const { return end_; }

 private:
  uintptr_t begin_ = 0, end_ = 0;
  bool is_plain_ = false;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_KEPT_FROM_FORKS_H_
