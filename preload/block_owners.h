// BlockOwners: which thread had the latest event of an address.
//
// The reader puts the events of all threads in order by their stamps, a span (what lies
// between two stamps of a thread) at a time. For that to be the true order of every address,
// an event needs a stamp of its own where the address changed hands: where the event before
// it on that address was another thread's. docs/event-order.md has the proof. This table
// tells: an entry holds the tag of the thread that had the latest event of one of the
// addresses that share the entry. Sharing costs stamps and never hides that one is needed.
//
//   any event of x        loads the entry of x. Its own tag: nobody else had an event of x
//                         since its own last one. Else it must take a stamp.
//   a stamp for x         [claim]   the entry becomes its tag
//                         [read]    then the clock is read
//                         [verify]  then the entry is still its tag; else once more
//
// So while the clock was read nobody claimed the entry: of two threads that claim an entry
// one after the other, the first has read its clock before the second claims, and the second
// reads its own behind that. No thread waits for another: a claim is made again only because
// another thread has made one.
//
// Once a second thread has had an event, in memory that is touched where it is used. 256 Ki
// entries tell 4 MiB of heap apart; a process with one thread has none.

#ifndef MEMTRACE_PRELOAD_BLOCK_OWNERS_H_
#define MEMTRACE_PRELOAD_BLOCK_OWNERS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/clock.h"

namespace memtrace {

class BlockOwners {
 public:
  using Tag = uint16_t;  // of a ThreadState; 0 nobody's
  static constexpr uint32_t kMaxTag = UINT16_MAX;
  static constexpr size_t kEntries = size_t{1} << 18;
  static constexpr size_t kBytes = kEntries * sizeof(Tag);

  using Entry = std::atomic<Tag>;
  static_assert(sizeof(Entry) == sizeof(Tag) && Entry::is_always_lock_free);

  // Neighbours have neighbouring entries, so that the table is as warm as the heap; each
  // MiB begins at an entry of its own, because arenas begin at multiples of 64 MiB.
  static size_t IndexOf(uintptr_t address) {
    const uint32_t start = static_cast<uint32_t>(address >> 20) * 0x9e3779b1u >> 14;
    return ((address >> 4) + start) & (kEntries - 1);
  }

  explicit BlockOwners(void* table) : entries_(static_cast<Entry*>(table)) {}

  bool IsOf(uintptr_t address, Tag tag) const {
    return entries_[IndexOf(address)].load(std::memory_order_relaxed) == tag;
  }

  // Claims the entry of `address` for `tag` and returns the time of that.
  uint64_t Claim(uintptr_t address, Tag tag) {
    Entry& entry = entries_[IndexOf(address)];
    uint64_t now;
    do {
      if (entry.load(std::memory_order_relaxed) != tag) entry.exchange(tag);  // [claim]
      now = g_clock.OrderedNow();                                             // [read]
    } while (entry.load(std::memory_order_acquire) != tag);                   // [verify]
    return now;
  }

 private:
  Entry* const entries_;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_BLOCK_OWNERS_H_
