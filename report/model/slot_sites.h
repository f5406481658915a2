// SlotSites: which site a slot of a stream leads to, of those that were asked for lately.
//
// The way is from the slot to a stack, and from the stack and the function to the site: two arrays,
// each with its bounds. Few of a program's sites allocate most of what it allocates, and for these
// the answer is here in one look.
//
//   uint32_t site = sites.Find(stream, slot, function);
//   if (site == 0) sites.Keep(stream, slot, function, site = the long way);
//   where the stream defines slots: sites.Forget(stream, first, count)
//   where it forgets all of them:   sites.Clear()
//
// Hot: Find() is on the path of each allocation.

#ifndef MEMTRACE_REPORT_MODEL_SLOT_SITES_H_
#define MEMTRACE_REPORT_MODEL_SLOT_SITES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "format/event_words.h"

namespace memtrace::report {

class SlotSites {
 public:
  SlotSites() { Clear(); }

  // What is the same for all slots of a stream: for a loop over its events.
  struct Stream {
    explicit Stream(uint32_t number) : scatter(number * 0x9e3779b9u), key(uint64_t{number} << 2) {}
    uint32_t scatter;
    uint64_t key;
  };

  // The site of malloc, calloc or realloc with the stack in `slot`. 0: not known.
  uint32_t Find(Stream stream, uint32_t slot, format::AllocFunction function) const {
    const size_t at = At(stream, slot);
    return keys_[at] == KeyOf(stream, slot, function) ? sites_[at] : 0;
  }
  void Keep(Stream stream, uint32_t slot, format::AllocFunction function, uint32_t site) {
    const size_t at = At(stream, slot);
    keys_[at] = KeyOf(stream, slot, function);
    sites_[at] = site;
  }
  // Slots from `first` on; and perhaps others.
  void Forget(Stream stream, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) keys_[At(stream, first + i)] = kNobody;
  }
  void Clear() { keys_.fill(kNobody); }

 private:
  static constexpr size_t kEntries = 512;
  static constexpr uint64_t kNobody = UINT64_MAX;

  static size_t At(Stream stream, uint32_t slot) { return (slot ^ stream.scatter) % kEntries; }
  static uint64_t KeyOf(Stream stream, uint32_t slot, format::AllocFunction function) {
    // No trace has 2^30 streams.
    return uint64_t{slot} << 32 | stream.key | static_cast<uint64_t>(function);
  }
  static_assert(static_cast<int>(format::AllocFunction::kRealloc) < 4);

  std::array<uint64_t, kEntries> keys_;
  std::array<uint32_t, kEntries> sites_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_SLOT_SITES_H_
