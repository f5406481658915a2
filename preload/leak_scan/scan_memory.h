// Memory of the one that scans: mapped by the kernel alone, and known, so that it is not
// scanned itself.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_MEMORY_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_MEMORY_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "preload/arch/arch.h"
#include "preload/own_memory.h"
#include "preload/sys.h"

namespace memtrace {

class ScanArena {
 public:
  ScanArena() = default;
  ~ScanArena() {
    for (size_t i = 0; i < count_; ++i) {
      sys::Munmap(reinterpret_cast<void*>(ranges_[i].begin), ranges_[i].end - ranges_[i].begin);
    }
  }
  ScanArena(const ScanArena&) = delete;
  ScanArena& operator=(const ScanArena&) = delete;

  // Zeroed, touched where used. Null: the kernel refuses, or it was asked too often.
  void* Allocate(size_t bytes) {
    bytes = (bytes + arch::kPageBytes - 1) & ~(arch::kPageBytes - 1);
    if (count_ == kMost) failed_ = true;
    if (failed_ || bytes == 0) return nullptr;
    void* const memory = sys::Mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    if (sys::MmapFailed(memory)) {
      failed_ = true;
      return nullptr;
    }
    // A large table is touched at a word here and there: huge pages would take far
    // more memory than that.
    if (bytes >= 2 << 20) sys::Madvise(memory, bytes, MADV_NOHUGEPAGE);
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    ranges_[count_++] = {begin, begin + bytes};
    return memory;
  }
  template <typename T>
  T* Array(size_t count) {
    return static_cast<T*>(Allocate(count * sizeof(T)));
  }
  // Allocates for a caller that can do with less: if there is no memory, that is no failure.
  void* TryAllocate(size_t bytes) {
    const bool failed = failed_;
    void* const memory = Allocate(bytes);
    failed_ = failed;
    return memory;
  }

  size_t size() const { return count_; }
  const OwnRange& operator[](size_t i) const { return ranges_[i]; }
  // It was asked for more than there is: something that was to be kept was not.
  bool failed() const { return failed_; }

 private:
  static constexpr size_t kMost = 512;
  OwnRange ranges_[kMost];
  size_t count_ = 0;
  bool failed_ = false;
};

// An array that grows by doubling.
template <typename T>
class ScanArray {
 public:
  explicit ScanArray(ScanArena& arena) : arena_(&arena) {}
  bool Add(const T& item) {
    if (size_ == capacity_) {
      const size_t capacity = capacity_ == 0 ? 4096 / sizeof(T) + 1 : capacity_ * 2;
      T* const items = arena_->template Array<T>(capacity);
      if (items == nullptr) return false;
      for (size_t i = 0; i < size_; ++i) items[i] = items_[i];
      items_ = items;
      capacity_ = capacity;
    }
    items_[size_++] = item;
    return true;
  }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return items_[i]; }
  const T& operator[](size_t i) const { return items_[i]; }

 private:
  ScanArena* arena_;
  T* items_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_MEMORY_H_
