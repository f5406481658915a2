// HeapRun: short events of one thread, one after the other, through a heap model in which nothing
// is out of the ordinary. It does what HeapModel::Alloc() and Free() do, with what every event
// changes in registers; they are what it is judged by (engine_test.cc).
//
//   if (HeapRun::Suits(model, stream)) {
//     HeapRun run(&model, &slot_sites, stream);
//     ... run.Alloc(), run.AllocAgain(), run.Free(): null or false: not for it. Then
//     run.Pause();  the model takes the event itself, or tells what it counted;  run.Resume();
//   }
//
// Out of the ordinary are: a selection, a sample, custom blocks, an order that is not exact, blocks
// in another's shadow, the first event of a thread (the times of its others are later). What else
// it cannot do it finds at the event: an address that is live already or not at all, a realloc that
// another thread or a signal handler has to do with, a block whose end is more than a free.
//
// The model must not be used while a run has not paused, but for what is live and of which
// site. Pause it at the end.
//
// What a site has allocated so far is asked for by OpenSeries() alone in between, for a site that
// has not changed since the run last paused: nothing of it is left to be added.

#ifndef MEMTRACE_REPORT_MODEL_HEAP_RUN_H_
#define MEMTRACE_REPORT_MODEL_HEAP_RUN_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "report/model/heap_model.h"
#include "report/model/slot_sites.h"

namespace memtrace::report {

class HeapRun {
 public:
  static bool Suits(const HeapModel& model, size_t stream) {
    return model.everything_ && model.options_.exact && model.options_.sample_bytes == 0 &&
           model.options_.watch == nullptr && model.custom_ == nullptr && !model.has_doubts() &&
           !model.threads_[stream].leaks_disabled &&
           model.threads_[stream].first_time_ns != UINT64_MAX;
  }

  HeapRun(HeapModel* model, SlotSites* slot_sites, size_t stream)
      : model_(*model), slot_sites_(*slot_sites), stream_(static_cast<uint32_t>(stream)) {
    Resume();
  }
  HeapRun(const HeapRun&) = delete;
  HeapRun& operator=(const HeapRun&) = delete;

  // Takes an allocation of less than 4 GiB that has no mapping of its own. Null: it failed, or a
  // block is live there.
  [[gnu::always_inline]] HeldBlock* Alloc(uint64_t address, uint32_t size, uint32_t waste,
                                          uint32_t site_index, uint64_t time) {
    HeldBlock* const block =
        Place(address, size, size | uint64_t{waste} << HeldBlock::kSizeBits, site_index, time);
    if (block != nullptr) [[likely]] Count(site_index, size, waste, 1);
    return block;
  }

  // The same for one that `entry` Is(). Its part of the figures that need not be right until the
  // run pauses is added then.
  [[gnu::always_inline]] bool AllocAgain(uint64_t address, SlotSites::Entry* entry, uint64_t time) {
    if (Place(address, entry->size(), entry->size_waste(), entry->site(), time) == nullptr)
        [[unlikely]] {
      return false;
    }
    slot_sites_.Again(entry);
    return true;
  }

  // Adds these parts.
  [[gnu::noinline]] void CountAgain() {
    slot_sites_.TakeCounted([this](const SlotSites::Entry& entry) {
      Count(entry.site(), entry.size(), entry.waste(), entry.count());
    });
  }

  [[gnu::always_inline]] bool Free(uint64_t address, uint64_t time) {
    if (address == 0) [[unlikely]] return false;
    HeldBlock* block = model_.table_.FindPlain(address);
    if (block == nullptr) [[unlikely]] {
      block = FindFlagged(address);
      if (block == nullptr) return false;
    }
    End(block, address, time);
    return true;
  }

  // The two events of a realloc. The second is for a thread that has announced one; without that it
  // is an allocation.
  bool HasIntent() const { return model_.threads_[stream_].pending != 0; }
  [[gnu::always_inline]] bool ReallocIntent(uint64_t address) {
    if (address == 0) return true;  // what it gives is an allocation
    HeapThread& thread = model_.threads_[stream_];
    HeldBlock* const block = model_.table_.Find(address);
    if (thread.pending != 0 || !thread.interrupted.empty() || block == nullptr ||
        block->has(HeldBlock::kLimbo)) {
      return false;
    }
    block->set(HeldBlock::kLimbo);
    thread.pending = address;
    thread.pending_is_debt = false;
    return true;
  }
  [[gnu::always_inline]] bool ReallocResult(uint64_t address, uint32_t size, uint32_t waste,
                                            uint32_t site_index, uint64_t time) {
    HeapThread& thread = model_.threads_[stream_];
    const uint64_t old = thread.pending;
    if (address == 0 || thread.pending_is_debt || !thread.interrupted.empty()) return false;
    HeldBlock* const block = model_.table_.Find(old);
    constexpr uint64_t kPlain = uint64_t{HeldBlock::kLimbo} << 48 | kOfNoMatter;
    if (block == nullptr || !block->has(HeldBlock::kLimbo) || block->thread != stream_ ||
        (block->address_flags & ~kPlain) != old ||
        (address != old && model_.table_.Contains(address))) {
      return false;
    }
    thread.pending = 0;
    const uint32_t old_site = block->site;
    const uint64_t old_size = block->size();
    HeapSite& site = model_.sites_[old_site];
    if (site.changed_at <= model_.checkpoint_) model_.Keep(site);
    const uint64_t low = site.interval_low;
    const uint32_t chain = model_.TakeChain(*block) + 1;
    last_site_ = 0;  // this free is no container's, and no temporary's
    last_alloc_ = 0;
    End(block, old, time);
    HeldBlock* const result = Alloc(address, size, waste, site_index, time);
    ++model_.reallocations_;
    if (old_site == site_index) site.interval_low = std::min(low, site.live_bytes);
    model_.KeepChain(result, chain);
    model_.usage_.Reallocated(old_site, site_index, address != old, old_size, size, chain);
    return true;
  }

  // Gives the model what the run has counted.
  void Pause() {
    CountAgain();
    HeapThread& thread = model_.threads_[stream_];
    HeapCounters& counters = model_.counters_;
    const uint64_t allocated = allocations();
    const uint64_t bytes_allocated = live_bytes_ - counters.live_bytes + bytes_freed_;
    thread.allocations += allocated;
    thread.bytes_allocated += bytes_allocated;
    thread.frees += frees_;
    thread.live_bytes += bytes_allocated - (bytes_freed_ - freed_of_others_);
    thread.temporary += temporary_;
    thread.last_alloc = last_alloc_;
    thread.last_size = last_size_;
    thread.last_site = last_site_;
    thread.last_time_ns = std::max(thread.last_time_ns, last_ns_);
    counters.allocations += allocated;
    counters.frees += frees_;
    counters.bytes_allocated += bytes_allocated;
    counters.live_bytes = live_bytes_;
    counters.live_blocks += allocated - frees_;
    counters.live_wasted_bytes += wasted_;
    model_.window_max_ = window_max_;
    model_.event_ = event_;
  }

  void Resume() {
    const HeapThread& thread = model_.threads_[stream_];
    last_alloc_ = thread.last_alloc;
    last_size_ = thread.last_size;
    last_site_ = thread.last_site;
    live_bytes_ = model_.counters_.live_bytes;
    window_max_ = model_.window_max_;
    event_ = model_.event_;
    frees_ = bytes_freed_ = freed_of_others_ = temporary_ = 0;
    wasted_ = 0;
    last_ns_ = 0;
  }

 private:
  // Since Resume(): each change of a site is one or the other.
  uint64_t allocations() const { return event_ - model_.event_ - frees_; }

  // Flags that leave a block's end a plain free.
  static constexpr uint64_t kOfNoMatter =
      uint64_t{HeldBlock::kMapped | HeldBlock::kIgnored} << 48 |
      uint64_t{HeldBlock::kLongChain} << HeldBlock::kChainShift;

  // Makes the block, and counts all of it but what Count() does.
  [[gnu::always_inline]] HeldBlock* Place(uint64_t address, uint32_t size, uint64_t size_waste,
                                          uint32_t site_index, uint64_t time) {
    if (address == 0) [[unlikely]] return nullptr;
    HeldBlock* const block = model_.table_.Insert(address);
    if (block == nullptr) [[unlikely]] return nullptr;
    block->size_waste = size_waste;
    block->site = site_index;
    block->thread = stream_;
    block->time_ns = time;
    last_alloc_ = address;
    last_size_ = size;
    last_site_ = site_index;
    last_ns_ = time;

    HeapSite& site = model_.sites_[site_index];
    if (site.changed_at <= model_.checkpoint_) [[unlikely]] {
      model_.Keep(site);
      if (site.allocations == 0) site.first_time_ns = time;  // never changed before
    }
    site.changed_at = ++event_;
    site.last_time_ns = time;
    site.live_bytes += size;
    ++site.live_blocks;
    site.Rose();

    live_bytes_ += size;
    if (live_bytes_ > window_max_) {  // which the peak is not below
      window_max_ = live_bytes_;
      if (live_bytes_ > model_.peak_bytes_) {
        model_.peak_bytes_ = live_bytes_;
        model_.peak_blocks_ = model_.counters_.live_blocks + allocations() - frees_;
        model_.peak_time_ns_ = time;
        model_.peak_event_ = model_.checkpoint_ = event_;
      }
    }
    return block;
  }

  // Counts `times` allocations of a site that are alike.
  [[gnu::always_inline]] void Count(uint32_t site_index, uint32_t size, uint32_t waste,
                                    uint32_t times) {
    HeapSite& site = model_.sites_[site_index];
    const uint64_t bytes = uint64_t{size} * times, wasted = uint64_t{waste} * times;
    site.allocations += times;
    site.bytes_allocated += bytes;
    site.largest_bytes = std::max<uint64_t>(site.largest_bytes, size);
    site.wasted_bytes += wasted;
    // Without the branch that a size of 0 would cost.
    const uint64_t doubled = uint64_t{size} << 1 | 1;
    const size_t size_class = 63u ^ static_cast<unsigned>(std::countl_zero(doubled));
    model_.sizes_.allocations[size_class] += times;
    model_.sizes_.bytes[size_class] += bytes;
    model_.site_sizes_[site_index][std::min(size_class, kSiteSizeClasses - 1)] += times;
    wasted_ += wasted;
  }

  // Counts the end of `block` at `address`, and removes it.
  [[gnu::always_inline]] void End(HeldBlock* block, uint64_t address, uint64_t time) {
    const uint64_t size = block->size();
    const uint32_t site_index = block->site, owner = block->thread;
    const uint64_t lifetime_ns = time - std::min(time, block->time_ns);
    wasted_ -= block->waste();
    model_.table_.Erase(block);
    last_ns_ = time;
    ++frees_;
    bytes_freed_ += size;
    live_bytes_ -= size;

    HeapSite& site = model_.sites_[site_index];
    if (site.changed_at <= model_.checkpoint_) [[unlikely]] model_.Keep(site);
    site.changed_at = ++event_;
    // Below 2^63, and signed numbers are converted in one instruction.
    const auto lifetime = static_cast<double>(static_cast<int64_t>(lifetime_ns));
    site.lifetime_ns += lifetime;
    site.live_bytes -= size;
    --site.live_blocks;
    model_.Fell(site, site_index, time, lifetime_ns, size);
    ++site.frees;
    if (owner == stream_) [[likely]] {
      if (last_alloc_ == address) {
        ++site.temporary;
        ++temporary_;
      }
    } else {
      FreeOfAnother(owner, address, size, &site);
    }
    if (last_site_ == site_index && last_alloc_ != address &&
        UsageFold::IsContainerGrowth(size, last_size_)) {
      model_.usage_.ContainerGrew(site_index, size);
      last_site_ = 0;  // it has its partner
    }
  }

  // A block with such flags.
  [[gnu::noinline]] HeldBlock* FindFlagged(uint64_t address) {
    HeldBlock* const block = model_.table_.Find(address);
    if (block == nullptr || (block->address_flags & ~kOfNoMatter) != address) return nullptr;
    model_.TakeChain(*block);
    return block;
  }
  [[gnu::noinline]] void FreeOfAnother(uint32_t owner, uint64_t address, uint64_t size,
                                       HeapSite* site) {
    HeapThread& thread = model_.threads_[owner];
    freed_of_others_ += size;
    thread.live_bytes -= size;
    if (thread.last_alloc == address) {
      ++site->temporary;
      ++thread.temporary;
    }
    ++site->freed_by_other_thread;
    model_.usage_.FreedByOther(owner, stream_, 1, size);
  }

  HeapModel& model_;
  SlotSites& slot_sites_;
  const uint32_t stream_;
  // Copies of the model's figures, whose own stay as they were at Resume().
  uint64_t live_bytes_, window_max_, event_;
  // Copies of the thread's.
  uint64_t last_alloc_, last_size_;
  uint32_t last_site_;
  // What was counted since Resume().
  uint64_t frees_, bytes_freed_, freed_of_others_, temporary_;
  uint64_t wasted_;  // modulo 2^64
  uint64_t last_ns_;  // of the latest event
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_HEAP_RUN_H_
