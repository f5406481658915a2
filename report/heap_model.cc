#include "report/heap_model.h"

namespace memtrace::report {
namespace {

// Two threads that allocate one address within this time were probably taken in
// the wrong order; with more time between them, the free is missing.
constexpr uint64_t kReorderNs = 1'000'000;

}  // namespace

HeapModel::HeapModel(const Options& options, StackTable* stacks)
    : options_(options), stacks_(stacks), sites_(1) {}

void HeapModel::AddThread(size_t stream, uint32_t serial) {
  if (stream >= threads_.size()) threads_.resize(stream + 1);
  threads_[stream].serial = serial;
  threads_[stream].selected = options_.threads.empty() || options_.threads.contains(serial);
}

uint32_t HeapModel::FindOrAddSite(StackId stack, format::AllocFunction function) {
  if (stack.value >= site_of_stack_.size()) {
    site_of_stack_.resize(std::max<size_t>(stacks_->size() + 1, stack.value + 1) * 2);
  }
  uint32_t* link = &site_of_stack_[stack.value];
  while (*link != 0) {
    if (sites_[*link].function == function) return *link;
    link = &sites_[*link].next;
  }
  const auto site = static_cast<uint32_t>(sites_.size());
  *link = site;  // before the vector may move
  sites_.emplace_back();
  sites_.back().stack = stack;
  sites_.back().function = function;
  return site;
}

// An alloc of a live address that had to be taken. Returns the entry for it, free
// for the new block.
HeldBlock* HeapModel::Collide(size_t stream, HeldBlock* block, EventTime when) {
  const uint64_t address = block->address();
  if (block->has(HeldBlock::kLimbo)) ++unordered_;
  block->clear(HeldBlock::kLimbo);
  const bool other = block->thread != stream;
  if (other && block->time_ns + kReorderNs >= when.low && !shadows_.contains(address)) {
    shadows_[address] = *block;
  } else {
    ++unseen_frees_;
    CountFree(*block, block->thread, when.time, false);
  }
  return block;
}

bool HeapModel::FreeShadow(size_t stream, uint64_t address, uint64_t time) {
  const auto shadow = shadows_.find(address);
  if (shadow == shadows_.end()) return false;
  CountFree(shadow->second, stream, time, false);
  shadows_.erase(shadow);
  return true;
}

void HeapModel::CountUnknownFree(size_t stream, uint64_t time) {
  if (!InRange(time) || !threads_[stream].selected) return;
  ++unknown_frees_;
}

bool HeapModel::ReallocIntent(size_t stream, uint64_t address, EventTime when, bool force,
                              WaitList& waits) {
  Threads& thread = threads_[stream];
  if (address == 0) return true;  // realloc(NULL, n): the result is an allocation
  HeldBlock* block = table_.Find(address);
  if (block == nullptr || block->has(HeldBlock::kLimbo)) {
    if (!force) return false;
    ForgetPending(stream, waits);
    if (block == nullptr) {
      CountUnknownFree(stream, when.time);
    } else {
      ++unordered_;
    }
    return true;
  }
  ForgetPending(stream, waits);
  block->set(HeldBlock::kLimbo);
  thread.pending = address;
  return true;
}

void HeapModel::ForgetPending(size_t stream, WaitList& waits) {
  const uint64_t address = std::exchange(threads_[stream].pending, 0);
  if (address == 0) return;
  HeldBlock* block = table_.Find(address);
  if (block != nullptr) block->clear(HeldBlock::kLimbo);
  waits.Changed(address);
}

bool HeapModel::ReallocResult(size_t stream, const HeapAlloc& alloc, EventTime when, bool force,
                              WaitList& waits) {
  Threads& thread = threads_[stream];
  const uint64_t old = thread.pending;
  if (old == 0) return Alloc(stream, alloc, when, force, waits);
  HeldBlock* target = alloc.address != 0 && alloc.address != old ? table_.Find(alloc.address)
                                                                 : nullptr;
  if (target != nullptr && !force) return false;

  thread.pending = 0;
  HeldBlock* block = table_.Find(old);
  if (block != nullptr) block->clear(HeldBlock::kLimbo);
  waits.Changed(old);
  if (alloc.address == 0 && alloc.size != 0) {
    ++failed_;  // and the old block stays
    return true;
  }
  if (block != nullptr) {
    CountFree(*block, stream, when.time, false);
    table_.Erase(block);
  }
  if (alloc.address == 0) return true;  // realloc(p, 0) was a free
  if (thread.selected && InRange(when.time)) ++reallocations_;
  return Alloc(stream, alloc, when, force, waits);
}

void HeapModel::Finish(Analysis* analysis) {
  WaitList nobody;
  for (size_t stream = 0; stream < threads_.size(); ++stream) ForgetPending(stream, nobody);
  // Two blocks cannot be live at one address.
  for (const auto& [address, block] : shadows_) {
    ++unordered_;
    CountFree(block, block.thread, block.time_ns, false);
  }
  shadows_.clear();

  Totals& totals = analysis->totals;
  totals.allocations = counters_.allocations;
  totals.frees = counters_.frees;
  totals.bytes_allocated = counters_.bytes_allocated;
  totals.live_bytes = counters_.live_bytes;
  totals.live_blocks = counters_.live_blocks;
  totals.peak_live_bytes = peak_bytes_;
  totals.peak_live_blocks = peak_blocks_;
  totals.peak_time_ns = peak_time_ns_;
  totals.reallocations = reallocations_;
  totals.failed_allocations = failed_;
  totals.earlier_frees = earlier_frees_;
  Coverage& coverage = analysis->coverage;
  coverage.unordered_events = unordered_;
  coverage.unseen_frees = unseen_frees_;
  (options_.forked ? coverage.inherited_frees : coverage.unknown_frees) = unknown_frees_;
  analysis->sizes = sizes_;

  for (size_t i = 1; i < sites_.size(); ++i) {
    const SiteState& from = sites_[i];
    Site site;
    site.stack = from.stack;
    site.function = from.function;
    site.allocations = from.allocations;
    site.frees = from.frees;
    site.bytes_allocated = from.bytes_allocated;
    site.live_bytes = from.live_bytes;
    site.live_blocks = from.live_blocks;
    site.peak_bytes = from.peak_bytes;
    const bool unchanged = from.changed_at <= peak_event_;
    site.bytes_at_peak = unchanged ? from.live_bytes : from.snapshot_bytes;
    site.blocks_at_peak = unchanged ? from.live_blocks : from.snapshot_blocks;
    site.wasted_bytes = from.wasted_bytes;
    site.temporary = from.temporary;
    site.freed_by_other_thread = from.freed_by_other_thread;
    site.largest_bytes = from.largest_bytes;
    site.first_time_ns = from.first_time_ns;
    site.last_time_ns = from.last_time_ns;
    totals.wasted_bytes += from.wasted_bytes;
    totals.temporary_allocations += from.temporary;
    const format::StackMarker marker = stacks_->MarkerOf(from.stack);
    if (analysis->process.stack_mode != format::StackMode::kOff &&
        marker != format::StackMarker::kNone && marker != format::StackMarker::kContextEnd) {
      coverage.marked_stacks += from.allocations;
    }
    analysis->sites.push_back(site);
  }
  for (const Threads& from : threads_) {
    ThreadSummary thread;
    thread.id = ThreadId{from.serial};
    thread.allocations = from.allocations;
    thread.frees = from.frees;
    thread.bytes_allocated = from.bytes_allocated;
    thread.temporary = from.temporary;
    thread.first_time_ns = from.first_time_ns != UINT64_MAX ? from.first_time_ns : 0;
    thread.last_time_ns = from.last_time_ns;
    analysis->threads.push_back(thread);
  }
  FinishLive(analysis);
  if (options_.keep_live_blocks) KeepLiveBlocks(analysis);
  // Sites that only hold blocks from outside the selection are none of it.
  std::erase_if(analysis->sites, [](const Site& site) { return site.allocations == 0; });
}

// What is known only of the blocks that are live at the end.
void HeapModel::FinishLive(Analysis* analysis) {
  std::vector<uint64_t> mapped_live(sites_.size());
  std::vector<uint64_t> first_time(sites_.size(), UINT64_MAX);
  table_.ForEach([&](const HeldBlock& block) {
    if (block.has(HeldBlock::kUncounted)) return;
    Site& site = analysis->sites[block.site - 1];
    const uint64_t size = block.size();
    site.live_wasted_bytes += block.waste();
    uint64_t& first = first_time[block.site];
    first = std::min(first, block.time_ns);
    site.live_last_time_ns = std::max(site.live_last_time_ns, block.time_ns);
    ThreadSummary& thread = analysis->threads[block.thread];
    thread.live_bytes += size;
    ++thread.live_blocks;
    const size_t size_class = std::bit_width(size);
    ++analysis->sizes.live_blocks[size_class];
    analysis->sizes.live_bytes[size_class] += size;
    if (block.has(HeldBlock::kMapped)) mapped_live[block.site] += MappingBytes(size + block.waste());
  });
  for (size_t i = 1; i < sites_.size(); ++i) {
    if (first_time[i] != UINT64_MAX) analysis->sites[i - 1].live_first_time_ns = first_time[i];
    if (sites_[i].mapped_calls == 0) continue;
    MappingSite mapping;
    mapping.kind = MappingSite::Kind::kMappedBlock;
    mapping.stack = sites_[i].stack;
    mapping.calls = sites_[i].mapped_calls;
    mapping.bytes = sites_[i].mapped_bytes;
    mapping.live_bytes = mapped_live[i];
    analysis->mappings.push_back(mapping);
    analysis->memory_map.mapped_blocks_bytes += mapped_live[i];
  }
}

void HeapModel::KeepLiveBlocks(Analysis* analysis) const {
  table_.ForEach([&](const HeldBlock& block) {
    if (block.has(HeldBlock::kUncounted)) return;
    const SiteState& site = sites_[block.site];
    analysis->live.push_back(
        {block.address(), block.size(), site.stack, site.function, block.time_ns});
  });
  std::sort(analysis->live.begin(), analysis->live.end(),
            [](const LiveBlock& a, const LiveBlock& b) { return a.address < b.address; });
}

}  // namespace memtrace::report
