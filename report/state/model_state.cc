// The state of the heap model and its parts, into and out of archives; and what is left of it
// for a range that begins later.
//
// Sites and stacks are not in here: their tables only grow, so the analyzer keeps what is new of
// them apart. A model that takes a state up has them already.

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "report/model/heap_model.h"
#include "report/state/state_archive.h"

namespace memtrace::report {

using index::StateReader;
using index::StateWriter;

namespace {

// Blocks by address, member by member: what is alike comes together.
template <typename Archive>
void FoldBlocks(Archive& archive, std::vector<HeldBlock>& blocks) {
  uint64_t count = blocks.size();
  archive(count);
  const auto each = [&](auto fold) {
    for (size_t i = 0; i < count && archive.ok(); ++i) {
      if constexpr (Archive::kReads) {
        if (i == blocks.size()) blocks.emplace_back();
      }
      fold(blocks[i]);
    }
  };
  if constexpr (Archive::kReads) blocks.clear();
  uint64_t before = 0;
  each([&](HeldBlock& block) {
    uint64_t difference = block.address() - before;
    uint64_t flags = block.address_flags >> 48;
    archive(difference, flags);
    if constexpr (Archive::kReads) {
      archive.Check(difference != 0 && difference <= format::kAddressMask - before &&
                    flags <= 0xffff);
      if (!archive.ok()) return;
      block.address_flags = (before + difference) | flags << 48;
    }
    before = block.address();
  });
  each([&](HeldBlock& block) {
    block.size_waste &= ~HeldBlock::kPassed;
    archive(block.size_waste);
  });
  each([&](HeldBlock& block) { archive(block.site); });
  each([&](HeldBlock& block) { archive(block.thread); });
  uint64_t time = 0;
  each([&](HeldBlock& block) {
    auto difference = static_cast<int64_t>(block.time_ns - time);
    archive(difference);
    block.time_ns = time + static_cast<uint64_t>(difference);
    time = block.time_ns;
  });
}

}  // namespace

template <typename Archive>
void CustomBlocks::Fold(Archive& archive) {
  archive(next_number_, addresses_, pools_);
  archive.Check(next_number_ < uint64_t{1} << 63);
  uint64_t count = blocks_.size();
  archive(count);
  if constexpr (Archive::kReads) {
    for (; count > 0 && archive.ok(); --count) {
      Key key;
      Block block;
      archive(key, block);
      // A holder is older than what it holds: so that no way from one to the next has no end.
      archive.Check(key.address == block.held.address() && key.number != 0 &&
                    key.number < next_number_ && block.holder.number < key.number &&
                    block.pool <= pools_.size());
      if (!archive.ok()) return;
      blocks_.emplace(key, std::move(block));
    }
  } else {
    for (auto& [key, block] : blocks_) archive(key, block);
  }
  archive(by_address_, by_name_and_stack_);
  for (const auto& [address, instance] : by_address_) archive.Check(instance.pool < pools_.size());
  for (const auto& [name, pool] : by_name_and_stack_) archive.Check(pool < pools_.size());
}

void CustomBlocks::ForgetFigures() {
  for (auto& [key, block] : blocks_) {
    block.held.set(HeldBlock::kUncounted);
    block.taken_bytes = 0;
  }
  for (Pool& pool : pools_) {
    pool.allocations = pool.frees = pool.bytes_allocated = 0;
    pool.live_bytes = pool.live_blocks = pool.peak_bytes = 0;
  }
}

template <typename Archive>
void SiteSeries::Fold(Archive& archive) {
  archive(interval_, sites_);
  archive.Check(interval_ <= kMostIntervals);
  for (const OpenSite& site : sites_) {
    archive.Check(site.interval <= interval_ || site.interval == kNone);
    uint32_t next = 0;
    for (const SeriesPoint& point : site.points) {
      archive.Check(point.interval >= next && point.interval <= interval_);
      next = point.interval + 1;
    }
  }
}

template <typename Archive>
void LateFrees::Fold(Archive& archive) {
  if constexpr (!Archive::kReads) {
    if (!frees_.empty()) DropOld(frees_.back().freed_ns);
  }
  archive(run_ns_, long_ns_, number_, weight_, frees_);
  archive.Check(std::has_single_bit(weight_) && frees_.size() <= kMost);
  for (const Free& free : frees_) archive.Check(free.born_ns <= free.freed_ns);
}

template <typename Archive>
void UsageFold::Fold(Archive& archive) {
  archive(exchanges_, other_exchanges_, moves_, chains_, handed_over_, freed_at_,
          frees_with_stack_, held_, interval_);
  moving_site_ = 0;
  archive.Check(interval_ <= SiteSeries::kMostIntervals);
  archive.Check(exchanges_.size() <= kMostExchanges);
  for (const HeldSeries& thread : held_) {
    archive.Check(thread.first <= interval_ && thread.values.size() <= interval_ - thread.first);
  }
}

template <typename Archive>
void OrderDoubts::Fold(Archive& archive, size_t streams) {
  archive(debts_, look_through_debts_at_, written_off_, unseen_);
  for (const auto& [address, debt] : debts_) archive.Check(debt.stream < streams);
  std::vector<std::pair<uint32_t, DoubtfulFree>> doubtful;
  for (size_t i = 0; !Archive::kReads && i < doubtful_frees_.size(); ++i) {
    if (doubtful_frees_[i].address != 0) {
      doubtful.emplace_back(static_cast<uint32_t>(i), doubtful_frees_[i]);
    }
  }
  archive(doubtful);
  if constexpr (Archive::kReads) {
    if (!doubtful.empty()) doubtful_frees_.resize(kDoubtfulFrees);
    for (const auto& [at, free] : doubtful) {
      archive.Check(at < doubtful_frees_.size() && free.debt.stream < streams);
      if (!archive.ok()) return;
      doubtful_frees_[at] = free;
    }
  }
}

template <typename Archive>
void HeapModel::Fold(Archive& archive) {
  std::vector<HeldBlock> blocks;
  if constexpr (!Archive::kReads) {
    blocks.reserve(table_.size());
    table_.ForEach([&](const HeldBlock& block) { blocks.push_back(block); });
    std::sort(blocks.begin(), blocks.end(), [](const HeldBlock& a, const HeldBlock& b) {
      return a.address() < b.address();
    });
  }
  FoldBlocks(archive, blocks);

  archive(threads_, leaks_were_disabled_, shadows_);
  doubts_.Fold(archive, threads_.size());

  for (size_t i = 1; i < sites_.size() && archive.ok(); ++i) {
    // The reader knows already which site this is.
    HeapSite site = sites_[i];
    site.stack = {};
    site.function = {};
    site.chosen = false;
    site.next = 0;
    archive(site);
    if constexpr (Archive::kReads) {
      site.stack = sites_[i].stack;
      site.function = sites_[i].function;
      site.chosen = sites_[i].chosen;
      site.next = sites_[i].next;
      sites_[i] = site;
    }
    archive(lifetimes_[i], site_sizes_[i]);
    if (options_.sample_bytes != 0) archive(sampled_[i]);
  }
  series_.Fold(archive);
  usage_.Fold(archive);
  late_frees_.Fold(archive);
  archive(counters_, sizes_, event_, peak_event_, interval_event_, checkpoint_, peak_bytes_,
          peak_blocks_, peak_time_ns_, window_max_, failed_, reallocations_, earlier_frees_,
          unordered_, unknown_frees_, unseen_frees_, stopped_allocations_, stopped_frees_);
  bool has_custom = custom_ != nullptr;
  archive(has_custom);

  if constexpr (Archive::kReads) {
    const auto is_block = [&](const HeldBlock& block) {
      return block.site > 0 && block.site < sites_.size() && block.thread < threads_.size();
    };
    for (const HeldBlock& block : blocks) {
      archive.Check(is_block(block));
      if (!archive.ok()) return;
      bool inserted;
      LiveTable::Replace(table_.FindOrInsert(block.address(), &inserted), block);
    }
    for (HeapThread& thread : threads_) {
      archive.Check(thread.last_site < sites_.size() &&
                    thread.interrupted.size() <= kMostInterrupted);
      thread.selected = options_.threads.empty() || options_.threads.contains(thread.serial);
    }
    for (const auto& [address, shadow] : shadows_) archive.Check(is_block(shadow.block));
    for (const auto& [site, moves] : usage_.moves())
      archive.Check(site > 0 && site < sites_.size());
    for (const auto& [threads, exchange] : usage_.exchanges()) {
      archive.Check(std::max(threads.first, threads.second) < threads_.size());
    }
    for (const LateFrees::Free& free : late_frees_.frees()) {
      archive.Check(free.site > 0 && free.site < sites_.size());
    }
    for (const auto& [sites, times] : usage_.handed_over()) {
      archive.Check(std::min(sites.first, sites.second) > 0 &&
                    std::max(sites.first, sites.second) < sites_.size());
    }
    for (const auto& [freed, times] : usage_.freed_at()) {
      archive.Check(freed.first > 0 && freed.first < sites_.size() &&
                    freed.second <= stacks_->size());
    }
    if (has_custom) custom_ = std::make_unique<CustomBlocks>();
  }
  if (custom_ == nullptr) return;
  custom_->Fold(archive);
  if constexpr (Archive::kReads) {
    for (const auto& [key, block] : custom_->blocks()) {
      archive.Check(block.held.site > 0 && block.held.site < sites_.size() &&
                    block.held.thread < threads_.size() && block.taken_site < sites_.size() &&
                    block.taken_thread < threads_.size());
    }
  }
}

void HeapModel::ForgetFigures() {
  std::vector<uint64_t> addresses;
  table_.ForEach([&](const HeldBlock& block) { addresses.push_back(block.address()); });
  const auto forget = [](HeldBlock& block) {
    block.set(HeldBlock::kUncounted);
    block.set_chain(0);
  };
  for (const uint64_t address : addresses) forget(*table_.Find(address));
  for (auto& [address, shadow] : shadows_) forget(shadow.block);
  for (HeapThread& thread : threads_) {
    thread.last_site = 0;
    thread.allocations = thread.frees = thread.bytes_allocated = thread.temporary = 0;
    thread.live_bytes = 0;
    thread.first_time_ns = UINT64_MAX;
    thread.last_time_ns = 0;
  }
  doubts_.ForgetPartners();
  for (size_t i = 1; i < sites_.size(); ++i) {
    HeapSite fresh;
    fresh.stack = sites_[i].stack;
    fresh.function = sites_[i].function;
    fresh.chosen = sites_[i].chosen;
    fresh.next = sites_[i].next;
    sites_[i] = fresh;
    lifetimes_[i] = {};
    site_sizes_[i] = {};
    if (options_.sample_bytes != 0) sampled_[i] = {};
  }
  series_ = {};
  late_frees_ = {};
  left_out_ = {};
  usage_ = {};
  counters_ = {};
  sizes_ = {};
  event_ = peak_event_ = interval_event_ = checkpoint_ = 0;
  peak_bytes_ = peak_blocks_ = peak_time_ns_ = window_max_ = 0;
  first_unknown_frees_.clear();
  failed_ = reallocations_ = earlier_frees_ = unordered_ = unknown_frees_ = unseen_frees_ = 0;
  if (custom_ != nullptr) custom_->ForgetFigures();
}

template void HeapModel::Fold(StateWriter&);
template void HeapModel::Fold(StateReader&);

}  // namespace memtrace::report
