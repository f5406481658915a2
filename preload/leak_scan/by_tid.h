// What is known of threads by their kernel ids, where there may be ten thousand: a walk over all of
// them for each would take as long as the rest of a scan.
//
//   ByTid<T>   something of each thread: Add() for all, Sort(), then Find()
//   TidSet     whether an id is one of those added

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_BY_TID_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_BY_TID_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "preload/leak_scan/scan_memory.h"

namespace memtrace {

template <typename T>
class ByTid {
 public:
  explicit ByTid(ScanArena& arena) : entries_(arena) {}

  void Add(int tid, const T& value) { entries_.Add({tid, entries_.size(), value}); }
  void Sort() {
    if (entries_.size() != 0) std::sort(begin(), end());
  }
  // What was added last for it. Null: nothing.
  const T* Find(int tid) const {
    const Entry* const after = std::upper_bound(
        begin(), end(), tid, [](int wanted, const Entry& entry) { return wanted < entry.tid; });
    return after != begin() && after[-1].tid == tid ? &after[-1].value : nullptr;
  }

 private:
  struct Entry {
    int tid;
    size_t place;
    T value;
    bool operator<(const Entry& other) const {
      return tid != other.tid ? tid < other.tid : place < other.place;
    }
  };
  Entry* begin() { return entries_.size() == 0 ? nullptr : &entries_[0]; }
  Entry* end() { return begin() + entries_.size(); }
  const Entry* begin() const { return entries_.size() == 0 ? nullptr : &entries_[0]; }
  const Entry* end() const { return begin() + entries_.size(); }

  ScanArray<Entry> entries_;
};

class TidSet {
 public:
  // How many words Use() needs for as many as `most` ids: twice as many at least, a power of 2.
  static size_t WordsFor(size_t most) {
    size_t words = 64;
    while (words < 2 * most) words *= 2;
    return words;
  }

  // `words` of WordsFor(), all 0.
  void Use(int* words, size_t count) {
    words_ = words;
    mask_ = count - 1;
  }

  bool Has(int tid) const { return tid > 0 && words_ != nullptr && words_[Place(tid)] == tid; }
  void Add(int tid) {
    if (tid > 0 && words_ != nullptr) words_[Place(tid)] = tid;
  }

 private:
  // Where it is, or would be: in the first free place from its own on.
  size_t Place(int tid) const {
    size_t at = (static_cast<uint64_t>(tid) * 0x9e3779b97f4a7c15u >> 32) & mask_;
    while (words_[at] != 0 && words_[at] != tid) at = (at + 1) & mask_;
    return at;
  }

  int* words_ = nullptr;
  size_t mask_ = 0;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_BY_TID_H_
