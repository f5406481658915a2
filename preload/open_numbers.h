// OpenNumbers: the numbers that descriptors of ours have had, for a fork child: it gets a copy of
// what another thread has open for a moment, which nobody there would close.
//
// A fork copies the table of descriptors first and memory later: what was open then may be closed
// since. So numbers are kept that ever were ours; of a few threads, which open one file at a time,
// these are few. And a thread may be between the call that gives a number and the note of it, or
// there may be too many: then the child has to search.
//
//   {
//     const OpenNumbers::Opening opening(&numbers);
//     fd = open(...);
//     numbers.Add(fd);
//   }
//   in the child: numbers.ForEachInherited(...)
//
// Async-signal-safe; any thread.

#ifndef MEMTRACE_PRELOAD_OPEN_NUMBERS_H_
#define MEMTRACE_PRELOAD_OPEN_NUMBERS_H_

#include <atomic>

namespace memtrace {

class OpenNumbers {
 public:
  class Opening {
   public:
    explicit Opening(OpenNumbers* numbers) : numbers_(*numbers) { numbers_.opening_.fetch_add(1); }
    ~Opening() { numbers_.opening_.fetch_sub(1); }
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;

   private:
    OpenNumbers& numbers_;
  };

  // An error is none.
  void Add(long fd) {
    if (fd < 0) return;
    const int value = static_cast<int>(fd) + 1;
    for (std::atomic<int>& place : places_) {
      int there = place.load(std::memory_order_relaxed);
      if (there == 0 && place.compare_exchange_strong(there, value)) return;
      if (there == value) return;
    }
    too_many_.store(true);
  }

  // In the child: visit(fd) for each number that one of ours may have, which is the lowest
  // that was free, or the lowest from `moved_up_from` on. It says whether there is a descriptor of
  // this number. Then none of them is anybody's any more, and all are forgotten: no thread of this
  // process may open one meanwhile.
  template <typename Visit>
  void ForEachInherited(long moved_up_from, Visit visit) {
    if (MustSearch()) {
      // Where so many are free now there is none of ours behind.
      constexpr int kFree = 16;
      constexpr long kMost = 4096;
      const auto search = [&visit](long fd, long end) {
        for (int free = 0; free < kFree && fd < end; ++fd) free = visit(fd) ? 0 : free + 1;
      };
      search(0, moved_up_from);
      search(moved_up_from, moved_up_from + kMost);
    }
    ForEach(visit);
    Forget();
  }

 private:
  bool MustSearch() const { return opening_.load() != 0 || too_many_.load(); }
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const std::atomic<int>& place : places_) {
      const int value = place.load();
      if (value == 0) return;
      visit(value - 1);
    }
  }
  // Who was opening something is no thread of this process.
  void Forget() {
    for (std::atomic<int>& place : places_) place.store(0);
    opening_.store(0);
    too_many_.store(false);
  }

  std::atomic<int> places_[64] = {};  // a number and 1, one behind the other; 0: no more
  std::atomic<int> opening_{0};
  std::atomic<bool> too_many_{false};
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_OPEN_NUMBERS_H_
