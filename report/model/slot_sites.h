// SlotSites: which site an allocation is of, for those that there were lately, and how often the
// same came again.
//
// The way is from the slot of an event to a stack, and from the stack and the function to the site:
// two arrays, each with its bounds. Most of what a program allocates is of few sites and sizes, and
// for these the answer is here in one look. What such an allocation adds to the figures of its site
// and of its size is the same each time: it is counted here, and added when the run of events
// pauses (heap_run.h), which costs a third of what it does to add it each time.
//
//   SlotSites::Allocation allocation(sites.KeyOf(stream), words of a kMalloc or kCalloc);
//   SlotSites::Entry& entry = sites.At(allocation);
//   if (entry.Is(allocation)) sites.Again(&entry)     it is of entry.site()
//   else sites.Keep(allocation, waste, site = the long way);
//   sites.TakeCounted([&](entry) { entry.count() more of entry.site() });
//   where the stream defines slots: sites.Forget(stream, first, count)
//   where it forgets all of them:   sites.Clear()
//
// Keys are good until the next Forget() or Clear().
//
// Hot: At() and what is done with its entry is on the path of each allocation.

#ifndef MEMTRACE_REPORT_MODEL_SLOT_SITES_H_
#define MEMTRACE_REPORT_MODEL_SLOT_SITES_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>

#include "format/event_words.h"
#include "report/model/live_table.h"

namespace memtrace::report {

class SlotSites {
 public:
  // An allocation but for its address.
  class Allocation {
   public:
    Allocation(uint64_t key, const uint64_t* words)
        : slot_size_(words[1]), head_(key | words[0] >> (64 - kHeadBits)) {}
    // The same of any size: what is kept of a realloc, for its site alone.
    Allocation OfAnySize() const {
      Allocation all = *this;
      all.slot_size_ &= ~uint64_t{UINT32_MAX};
      all.head_ &= ~kDetailBits;
      return all;
    }
    uint32_t slot() const { return static_cast<uint32_t>(slot_size_ >> 32); }
    uint32_t size() const { return static_cast<uint32_t>(slot_size_); }

   private:
    friend class SlotSites;
    uint64_t slot_size_;  // the second word of the event
    uint64_t head_;       // of the first the kind and the detail; above these the key
  };

  class Entry {
   public:
    bool Is(const Allocation& allocation) const {
      return slot_size_ == allocation.slot_size_ && head_ == allocation.head_;
    }
    uint32_t site() const { return site_; }
    uint32_t size() const { return static_cast<uint32_t>(size_waste_); }
    uint32_t waste() const { return static_cast<uint32_t>(size_waste_ >> HeldBlock::kSizeBits); }
    uint64_t size_waste() const { return size_waste_; }  // as in HeldBlock
    uint32_t count() const { return count_; }

   private:
    friend class SlotSites;
    uint64_t slot_size_ = 0;
    uint64_t head_ = kNobody;
    uint64_t size_waste_ = 0;
    uint32_t site_ = 0;
    uint32_t count_ = 0;  // not 0: it is in counted_
  };

  // What is the same for all slots of a stream: for a loop over its events.
  uint64_t KeyOf(size_t stream) const {
    return uint64_t{generation_} << kGenerationShift | uint64_t{stream} << kHeadBits;
  }

  Entry& At(const Allocation& allocation) { return entries_[IndexOf(allocation)]; }

  void Again(Entry* entry) {
    if (entry->count_++ == 0) counted_[counted_count_++] = entry;
  }
  template <typename Function>
  void TakeCounted(Function function) {
    for (size_t i = 0; i < counted_count_; ++i) {
      function(const_cast<const Entry&>(*counted_[i]));
      counted_[i]->count_ = 0;
    }
    counted_count_ = 0;
  }

  // Not where another one is counted.
  void Keep(const Allocation& allocation, uint32_t waste, uint32_t site) {
    Entry& entry = At(allocation);
    if (entry.count_ != 0) return;
    entry.slot_size_ = allocation.slot_size_;
    entry.head_ = allocation.head_;
    entry.size_waste_ = allocation.size() | uint64_t{waste} << HeldBlock::kSizeBits;
    entry.site_ = site;
    kept_.set(BitOf(allocation.head_ >> kHeadBits & kMostStreams, allocation.slot()));
  }
  // Slots from `first` on. What is counted of them remains.
  void Forget(size_t stream, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      if (kept_.test(BitOf(stream, first + i))) [[unlikely]] return Clear();
    }
  }
  void Clear() {
    kept_.reset();
    if (++generation_ <= kLastGeneration) return;
    generation_ = 0;
    for (Entry& entry : entries_) entry.head_ = kNobody;
  }

 private:
  static constexpr unsigned kIndexBits = 10;
  static constexpr unsigned kHeadBits = 16;
  static constexpr uint64_t kDetailBits = 0xfff0;
  static constexpr unsigned kStreamBits = 30;  // no trace has as many
  static constexpr uint64_t kMostStreams = (uint64_t{1} << kStreamBits) - 1;
  static constexpr unsigned kGenerationShift = kHeadBits + kStreamBits;
  static constexpr uint32_t kLastGeneration = (1u << (64 - kGenerationShift)) - 2;
  static constexpr uint64_t kNobody = UINT64_MAX;  // of no generation

  static size_t IndexOf(const Allocation& allocation) {
    return (allocation.slot_size_ + allocation.head_) * 0x9e3779b97f4a7c15 >> (64 - kIndexBits);
  }

  static size_t BitOf(uint64_t stream, uint32_t slot) {
    return (slot + stream * 0x9e3779b97f4a7c15) % kKeptBits;
  }
  static constexpr size_t kKeptBits = size_t{1} << 16;

  std::array<Entry, size_t{1} << kIndexBits> entries_;
  std::array<Entry*, size_t{1} << kIndexBits> counted_;  // the first counted_count_
  size_t counted_count_ = 0;
  uint32_t generation_ = 0;  // entries of another one are forgotten
  std::bitset<kKeptBits> kept_;  // slots that an entry has been of, by BitOf()
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_SLOT_SITES_H_
