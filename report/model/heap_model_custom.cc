// HeapModel's custom blocks: pools, allocators of the program's own, and blocks that are
// never leaks.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "report/findings/analysis.h"
#include "report/model/heap_model.h"

namespace memtrace::report {

CustomBlocks& HeapModel::custom() {
  if (custom_ == nullptr) {
    custom_ = std::make_unique<CustomBlocks>();
    table_.ForEach([&](const HeldBlock& block) { custom_->AddMallocBlock(block.address()); });
  }
  return *custom_;
}

const HeldBlock* HeapModel::CountedHolder(const CustomBlocks::Block& block) {
  const CustomBlocks::Key key = custom_->CountedHolder(block);
  if (key.number != 0) return &custom_->blocks().find(key)->second.held;
  if (key.address == 0) return nullptr;
  const HeldBlock* of_malloc = table_.Find(key.address);
  return of_malloc != nullptr && !of_malloc->has(HeldBlock::kUncounted) ? of_malloc : nullptr;
}

void HeapModel::TakeBytes(const HeldBlock& holder, CustomBlocks::Block* block) {
  HeapSite& site = sites_[holder.site];
  HeapThread& thread = threads_[holder.thread];
  BeforeChange(site);
  // No more than is there, should blocks overlap that cannot.
  block->taken_bytes = std::min({block->held.size(), site.live_bytes, thread.live_bytes});
  block->taken_site = holder.site;
  block->taken_thread = holder.thread;
  site.live_bytes -= block->taken_bytes;
  site.interval_low = std::min(site.interval_low, site.live_bytes);
  thread.live_bytes -= block->taken_bytes;
}

void HeapModel::CustomAlloc(size_t stream, const HeapAlloc& alloc, uint64_t pool, uint64_t time) {
  if (alloc.address == 0) return;
  CustomBlocks& custom = this->custom();
  const auto old = custom.Find(alloc.address, pool);
  if (old != custom.blocks().end()) {
    CountUnseenFree(alloc.address, time);
    EndCustom(old, old->second.held.thread, time);
  }
  HeapThread& thread = threads_[stream];
  const uint64_t size = std::min(alloc.size, HeldBlock::kMaxSize);
  CustomBlocks::Block block;
  block.pool_address = pool;
  if (pool != 0) block.pool = custom.PoolAt(pool) + 1;
  HeldBlock& held = block.held;
  held.address_flags = alloc.address;
  held.set_size(size, 0);
  held.thread = static_cast<uint32_t>(stream);
  held.time_ns = time;
  held.site = SiteOf(alloc.stack, alloc.function);
  if (thread.leaks_disabled) held.set(HeldBlock::kIgnored);
  if (options_.watch != nullptr) options_.watch->Placed(alloc.address, true, time);
  const bool chosen = everything_ || IsChosen(thread, sites_[held.site], size, time);
  const bool counted = chosen && !alloc.stopped;
  if (!counted) held.set(HeldBlock::kUncounted);
  if (alloc.stopped) {
    held.set(HeldBlock::kStopped);
    ++stopped_allocations_;
  }

  const auto outer = custom.FindHolder(alloc.address, size);
  if (outer != custom.blocks().end()) {
    block.holder = outer->first;
  } else if (const HeldBlock* of_malloc = custom.FindMallocBlock(alloc.address, &table_);
             of_malloc != nullptr &&
             alloc.address - of_malloc->address() + size <= of_malloc->size()) {
    block.holder = {of_malloc->address(), 0};
  }
  if (!counted) {
    if (InRange(time) && !alloc.stopped) left_out_.Allocated(held.site, time, 1);
    custom.Insert(block);
    return;
  }
  if (const HeldBlock* holder = CountedHolder(block)) TakeBytes(*holder, &block);
  custom.Insert(block);

  // No custom block is recorded of a program that is sampled.
  CountAllocation(thread, sites_[held.site], held.site, size, SampleWeight(size, 0),
                  block.taken_bytes, time);
  if (block.pool != 0) {
    CustomBlocks::Pool& of = custom.pools()[block.pool - 1];
    ++of.allocations;
    ++of.live_blocks;
    of.bytes_allocated += size;
    of.live_bytes += size;
    of.peak_bytes = std::max(of.peak_bytes, of.live_bytes);
  }
}

// Ends what is in it, then the block itself.
void HeapModel::EndCustom(CustomBlocks::Blocks::iterator at, size_t stream, uint64_t time) {
  EndTogether(custom_->WithBlocksIn(at), stream, time);
}

// `keys` have with each block all that lie in it, innermost first. They end at one instant: what a
// block has back meanwhile from those in it was at no moment its site's own.
void HeapModel::EndTogether(const std::vector<CustomBlocks::Key>& keys, size_t stream,
                            uint64_t time) {
  CustomBlocks::Blocks& blocks = custom_->blocks();
  if (keys.size() == 1) return CountCustomFree(blocks.find(keys[0]), stream, time);
  absl::flat_hash_map<uint32_t, HeapSite::Highest> before;  // by site
  for (const CustomBlocks::Key& key : keys) {
    const CustomBlocks::Block& block = blocks.find(key)->second;
    if (block.held.has(HeldBlock::kUncounted)) continue;
    before.try_emplace(block.held.site, HighestBefore(sites_[block.held.site]));
    if (block.taken_bytes == 0) continue;
    before.try_emplace(block.taken_site, HighestBefore(sites_[block.taken_site]));
  }
  for (const CustomBlocks::Key& key : keys) CountCustomFree(blocks.find(key), stream, time);
  for (const auto& [site, highest] : before) {
    sites_[site].set_highest(highest);
    sites_[site].KeepHighest();
  }
}

// Of the block alone.
void HeapModel::CountCustomFree(CustomBlocks::Blocks::iterator at, size_t stream, uint64_t time) {
  const CustomBlocks::Block block = at->second;
  custom_->Erase(at);
  const HeldBlock& held = block.held;
  const bool counted = !held.has(HeldBlock::kUncounted);
  const uint64_t size = held.size();
  if (options_.watch != nullptr) options_.watch->Ended(held.address(), true, held.time_ns, time);
  HeapThread& thread = threads_[stream];
  if (counted || InRange(time)) {
    thread.last_time_ns = std::max(thread.last_time_ns, time);
  }
  if (held.has(HeldBlock::kStopped)) {
    ++stopped_frees_;
    return;
  }
  if (!counted) {
    if (!InRange(time)) return;
    left_out_.Freed(held.site, time, 1);
    if (IsEarlier(held)) {
      ++earlier_frees_;
      left_out_.FreedEarlier(held.site, size);
    }
    return;
  }
  thread.frees += 1;
  threads_[block.taken_thread].live_bytes += block.taken_bytes;
  uint64_t& live_of_thread = threads_[held.thread].live_bytes;
  live_of_thread -= std::min(size, live_of_thread);
  thread.first_time_ns = std::min(thread.first_time_ns, time);
  HeapSite& site = sites_[held.site];
  BeforeChange(site);
  site.live_bytes -= std::min(size, site.live_bytes);
  site.live_blocks -= 1;
  const uint64_t lifetime_ns = time - std::min(time, held.time_ns);
  site.lifetime_ns += static_cast<double>(lifetime_ns);
  Fell(site, held.site, time, lifetime_ns, size);
  site.frees += 1;
  if (held.thread != stream) {
    site.freed_by_other_thread += 1;
    usage_.FreedByOther(held.thread, stream, 1, size);
  }
  if (block.taken_bytes != 0) {
    HeapSite& holder = sites_[block.taken_site];
    BeforeChange(holder);
    holder.live_bytes += block.taken_bytes;
    holder.KeepHighest();
  }
  counters_.frees += 1;
  counters_.live_bytes -= size - block.taken_bytes;
  counters_.live_blocks -= 1;
  if (block.pool != 0) {
    CustomBlocks::Pool& of = custom_->pools()[block.pool - 1];
    ++of.frees;
    --of.live_blocks;
    of.live_bytes -= size;
  }
}

void HeapModel::EndBlocksIn(const HeldBlock& block, uint64_t kept_bytes, size_t stream,
                            uint64_t time) {
  const uint64_t begin = block.address();
  const std::vector<CustomBlocks::Key> in_it =
      custom_->BlocksIn(begin, begin + std::max<uint64_t>(block.size(), 1), begin + kept_bytes);
  if (in_it.empty()) return;
  HeapSite& site = sites_[block.site];
  const bool counted = !block.has(HeldBlock::kUncounted);
  HeapSite::Highest before;
  if (counted) before = HighestBefore(site);
  EndTogether(in_it, stream, time);
  if (counted) site.set_highest(before);
}

std::vector<CustomBlocks::Key> HeapModel::TakeBlocksOff(const HeldBlock& holder) {
  std::vector<CustomBlocks::Key> held;
  for (const CustomBlocks::Key& key :
       custom_->BlocksIn(holder.address(), holder.address() + holder.size())) {
    CustomBlocks::Block& block = custom_->blocks().find(key)->second;
    if (custom_->CountedHolder(block) != CustomBlocks::Key{holder.address(), 0}) continue;
    held.push_back(key);
    if (block.held.has(HeldBlock::kUncounted)) continue;
    if (block.taken_bytes != 0) {
      HeapSite& site = sites_[block.taken_site];
      BeforeChange(site);
      site.live_bytes += block.taken_bytes;
      threads_[block.taken_thread].live_bytes += block.taken_bytes;
    } else {
      // The holder has none that count; the new one may, and with it these bytes.
      block.taken_bytes = block.held.size();
      counters_.live_bytes -= block.taken_bytes;
    }
  }
  return held;
}

void HeapModel::PutBlocksOn(uint64_t address, const std::vector<CustomBlocks::Key>& held,
                            const HeapSite::Highest& before) {
  const HeldBlock* const holder = table_.Find(address);
  const bool counted = holder != nullptr && !holder->has(HeldBlock::kUncounted);
  CustomBlocks::Blocks& blocks = custom_->blocks();
  for (const CustomBlocks::Key& key : held) {
    const auto at = blocks.find(key);
    if (at == blocks.end()) continue;  // it ended with a block that should not have been there
    CustomBlocks::Block& block = at->second;
    if (holder == nullptr && block.holder.number == 0) block.holder = {};
    if (!counted) {
      counters_.live_bytes += block.taken_bytes;  // no site's but its own
      block.taken_bytes = 0;
      continue;
    }
    // Of the change that the new block was: it may be the peak, at which they are taken off.
    block.taken_site = holder->site;
    block.taken_thread = holder->thread;
    sites_[holder->site].live_bytes -= block.taken_bytes;
    threads_[holder->thread].live_bytes -= block.taken_bytes;
  }
  if (!counted) return;
  HeapSite& site = sites_[holder->site];
  site.set_highest(before);
  site.KeepHighest();
  site.interval_low = std::min(site.interval_low, site.live_bytes);
}

void HeapModel::CustomFree(size_t stream, uint64_t address, uint64_t pool, uint64_t time) {
  CustomBlocks& custom = this->custom();
  const auto at = custom.Find(address, pool);
  if (at != custom.blocks().end()) {
    EndCustom(at, stream, time);
  } else if (InRange(time) && threads_[stream].selected) {
    ++unknown_frees_;
  }
}

void HeapModel::CreatePool(size_t stream, uint64_t pool, std::string_view name, StackId stack,
                           uint64_t time) {
  DestroyPool(stream, pool, time);  // should the trace not have the end of the last one here
  custom().CreatePool(pool, name, stack, time);
}

void HeapModel::DestroyPool(size_t stream, uint64_t pool, uint64_t time) {
  CustomBlocks& custom = this->custom();
  EndTogether(custom.WithBlocksOf(pool), stream, time);
  custom.ForgetPool(pool);
}

void HeapModel::IgnoreBlock(uint64_t address) {
  HeldBlock* exact = table_.Find(address);
  if (custom_ != nullptr) {
    const auto inner = custom_->FindHolder(address, 1);
    if (inner != custom_->blocks().end()) {
      inner->second.held.set(HeldBlock::kIgnored);
      return;
    }
  }
  if (exact == nullptr) exact = custom().FindMallocBlock(address, &table_);
  if (exact != nullptr) exact->set(HeldBlock::kIgnored);
}

void HeapModel::DisableLeaks(uint32_t serial, bool disabled) {
  uint32_t of_thread = serial;
  for (const HeapThread& thread : threads_) {
    if (thread.serial == serial) of_thread = thread.of_thread;
  }
  for (HeapThread& thread : threads_) {
    if (thread.of_thread == of_thread) thread.leaks_disabled = disabled;
    leaks_were_disabled_ |= thread.leaks_disabled;
  }
}

std::vector<HeldBlock> HeapModel::CopyLive() const {
  std::vector<HeldBlock> blocks;
  const size_t custom = custom_ != nullptr ? custom_->blocks().size() : 0;
  blocks.reserve(table_.size() + custom);
  if (custom_ == nullptr) {
    table_.ForEach([&](const HeldBlock& block) { blocks.push_back(block); });
    return blocks;
  }
  const Holders holders = FindHolders();
  table_.ForEach([&](const HeldBlock& block) {
    if (!holders.of_malloc.contains(block.address())) blocks.push_back(block);
  });
  for (const auto& [key, block] : custom_->blocks()) {
    if (!holders.custom.contains(key.number)) blocks.push_back(block.held);
  }
  return blocks;
}

namespace {

// `inner` are in the order of their addresses.
void AddWhatIsLeft(const HeldBlock& holder, const std::vector<const HeldBlock*>& inner,
                   std::vector<HeldBlock>* pieces) {
  uint64_t at = holder.address();
  const uint64_t end = at + holder.size();
  bool more = false;
  const auto add = [&](uint64_t to, uint64_t waste) {
    if (at >= to && waste == 0) return;
    HeldBlock piece = holder;
    piece.address_flags = (holder.address_flags & ~format::kAddressMask) | at;
    piece.set_size(to - at, waste);
    if (std::exchange(more, true)) piece.set(HeldBlock::kMore);
    pieces->push_back(piece);
  };
  for (const HeldBlock* block : inner) {
    add(std::min(block->address(), end), 0);
    at = std::clamp(block->address() + block->size(), at, end);
  }
  add(end, holder.waste());
}

}  // namespace

std::vector<HeldBlock> HeapModel::CopyLiveBytes() const {
  std::vector<HeldBlock> blocks = CopyLive();
  if (custom_ == nullptr) return blocks;
  absl::btree_map<CustomBlocks::Key, std::vector<const HeldBlock*>> inner_of;
  for (const auto& [key, block] : custom_->blocks()) {
    if (block.holder.address != 0) inner_of[block.holder].push_back(&block.held);
  }
  for (const auto& [key, inner] : inner_of) {
    const HeldBlock* holder = nullptr;
    if (key.number == 0) {
      holder = table_.Find(key.address);
    } else if (const auto custom = custom_->blocks().find(key); custom != custom_->blocks().end()) {
      holder = &custom->second.held;
    }
    if (holder != nullptr) AddWhatIsLeft(*holder, inner, &blocks);
  }
  return blocks;
}

HeapModel::Holders HeapModel::FindHolders() const {
  Holders holders;
  if (custom_ == nullptr) return holders;
  for (const auto& [key, block] : custom_->blocks()) {
    if (block.holder.number != 0) {
      holders.custom.insert(block.holder.number);
    } else if (block.holder.address != 0) {
      holders.of_malloc.insert(block.holder.address);
    }
  }
  return holders;
}

std::vector<LiveBlock> HeapModel::LiveBlocks() const {
  std::vector<LiveBlock> live;
  live.reserve(table_.size() + (custom_ != nullptr ? custom_->blocks().size() : 0));
  const Holders holders = FindHolders();
  const auto add = [&](const HeldBlock& block, bool holds, uint32_t pool) {
    if (block.has(HeldBlock::kUncounted)) return;
    const HeapSite& site = sites_[block.site];
    live.push_back({block.address(), block.size(), site.stack, site.function, block.time_ns,
                    block.has(HeldBlock::kIgnored), holds, pool});
  };
  table_.ForEach([&](const HeldBlock& block) {
    add(block, holders.of_malloc.contains(block.address()), 0);
  });
  if (custom_ != nullptr) {
    for (const auto& [key, block] : custom_->blocks()) {
      add(block.held, holders.custom.contains(key.number), block.pool);
    }
  }
  std::stable_sort(live.begin(), live.end(),
                   [](const LiveBlock& a, const LiveBlock& b) { return a.address < b.address; });
  return live;
}

// What they took off blocks of malloc and of each other, which FinishLive() has counted whole.
void HeapModel::FinishCustom(Analysis* analysis) {
  for (const auto& [key, block] : custom_->blocks()) {
    if (block.taken_bytes == 0) continue;
    const HeldBlock* holder = CountedHolder(block);
    if (holder == nullptr) continue;
    analysis->threads[block.taken_thread].live_bytes -= block.taken_bytes;
    analysis->sizes.live_bytes[std::bit_width(holder->size())] -= block.taken_bytes;
  }
  for (const CustomBlocks::Pool& from : custom_->pools()) {
    Pool pool;
    pool.name = from.name;
    pool.stack = from.stack;
    pool.created = from.created;
    pool.destroyed = from.destroyed;
    pool.first_created_ns = from.first_created_ns;
    pool.allocations = from.allocations;
    pool.frees = from.frees;
    pool.bytes_allocated = from.bytes_allocated;
    pool.live_bytes = from.live_bytes;
    pool.live_blocks = from.live_blocks;
    pool.peak_bytes = from.peak_bytes;
    analysis->pools.push_back(std::move(pool));
  }
}

}  // namespace memtrace::report
