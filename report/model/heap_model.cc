#include "report/model/heap_model.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "report/trace/trace_reader.h"

namespace memtrace::report {

HeapModel::Options HeapModel::Options::OrderOf(const TraceReader& reader) {
  Options options;
  options.exact = reader.metadata().process.stamp_rule == format::StampRule::kChangeOfOwner;
  options.of_lines = reader.metadata().process.imported();
  return options;
}

HeapModel::HeapModel(const Options& options, StackTable* stacks)
    : options_(options),
      everything_(options.range.whole() && options.threads.empty() &&
                  options.filter.sizes.all() && !options.filter.sites &&
                  options.chosen == nullptr),
      stacks_(stacks), sites_(1), lifetimes_(1), site_sizes_(1),
      sampled_(options.sample_bytes != 0) {}

void HeapModel::AddThread(size_t stream, uint32_t serial, uint32_t handlers_of) {
  if (stream >= threads_.size()) threads_.resize(stream + 1);
  const uint32_t of_thread = handlers_of != 0 ? handlers_of : serial;
  // Nothing to ask the others for where no thread ever did.
  for (size_t i = 0; leaks_were_disabled_ && i < threads_.size(); ++i) {
    if (threads_[i].of_thread == of_thread) {
      threads_[stream].leaks_disabled |= threads_[i].leaks_disabled;
    }
  }
  threads_[stream].serial = serial;
  threads_[stream].of_thread = of_thread;
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
  lifetimes_.emplace_back();
  site_sizes_.emplace_back();
  sites_.back().chosen = !options_.filter.sites || options_.filter.sites(stack);
  sites_.back().stack = stack;
  sites_.back().function = function;
  if (options_.sample_bytes != 0) sampled_.emplace_back();
  return site;
}

void HeapModel::OpenSeries(HeapSite& site) {
  series_.Open(static_cast<size_t>(&site - sites_.data()), SeriesNow(site));
  site.interval_low = site.interval_high = site.live_bytes;
}

bool HeapModel::FreeWithStack(size_t stream, uint64_t address, StackId stack, EventTime when,
                              bool force, WaitList& waits) {
  const HeldBlock* const block = table_.Find(address);
  const bool counts = block != nullptr && !block->has(HeldBlock::kLimbo) &&
                      !block->has(HeldBlock::kUncounted);
  const uint32_t site = counts ? block->site : 0;
  if (!Free(stream, address, when, force, waits)) return false;
  usage_.FreeHasStack();
  if (site != 0) usage_.FreedAt(site, stack);
  return true;
}

bool HeapModel::ReallocIntent(size_t stream, uint64_t address, EventTime when, bool force,
                              WaitList& waits) {
  if (address == 0) return true;  // realloc(NULL, n): the result is an allocation
  HeldBlock* block = table_.Find(address);
  const bool ready = block != nullptr && !block->has(HeldBlock::kLimbo);
  if (!ready && !force) return false;
  HeapThread& thread = threads_[stream];
  if (thread.interrupted.size() == kMostInterrupted) DropPending(stream, waits);
  if (thread.pending != 0) thread.interrupted.emplace_back(thread.pending, thread.pending_is_debt);
  threads_[stream].pending = address;
  threads_[stream].pending_is_debt = !ready;
  if (ready) {
    block->set(HeldBlock::kLimbo);
  } else {
    AddDebt(stream, address, when);
  }
  return true;
}

void HeapModel::ForgetPending(size_t stream, WaitList& waits) {
  do DropPending(stream, waits);
  while (ResumePending(stream));
}

void HeapModel::DropPending(size_t stream, WaitList& waits) {
  const uint64_t address = std::exchange(threads_[stream].pending, 0);
  if (address == 0) return;
  if (std::exchange(threads_[stream].pending_is_debt, false)) {
    doubts_.ForgetDebt(stream, address);
    return;
  }
  HeldBlock* block = FindInLimbo(address);
  if (block != nullptr) block->clear(HeldBlock::kLimbo);
  waits.Changed(address);
}

// The handler that interrupted a realloc has returned.
bool HeapModel::ResumePending(size_t stream) {
  HeapThread& thread = threads_[stream];
  if (thread.interrupted.empty()) return false;
  std::tie(thread.pending, thread.pending_is_debt) = thread.interrupted.back();
  thread.interrupted.pop_back();
  return true;
}

bool HeapModel::ReallocResult(size_t stream, const HeapAlloc& alloc, EventTime when, bool force,
                              WaitList& waits) {
  const uint64_t old = threads_[stream].pending;
  if (old == 0) return Alloc(stream, alloc, when, force, waits);
  const bool elsewhere = alloc.address != 0 && alloc.address != old;
  if (elsewhere && !force && table_.Find(alloc.address) != nullptr) return false;

  if (alloc.address == 0 && alloc.size != 0) {
    CountFailure(stream, alloc, when.time);
    DropPending(stream, waits);  // the old block stays
    ResumePending(stream);
    return true;
  }
  HeldBlock* block = threads_[stream].pending_is_debt ? nullptr : FindInLimbo(old);
  threads_[stream].pending = 0;
  threads_[stream].pending_is_debt = false;
  ResumePending(stream);
  waits.Changed(old);
  std::vector<CustomBlocks::Key> held;
  uint32_t old_site = 0;
  uint64_t low = 0, old_size = 0;
  uint32_t earlier_reallocs = 0;
  bool was_mapped = false;
  if (block != nullptr) {
    was_mapped = block->has(HeldBlock::kMapped);
    if (!block->has(HeldBlock::kUncounted)) {
      old_site = block->site;
      old_size = block->size();
      HeapSite& site = sites_[old_site];
      if (site.changed_at <= checkpoint_) Keep(site);
      low = site.interval_low;
    }
    threads_[stream].last_site = 0;  // this free is no container's
    stays_in_place_ = custom_ != nullptr && alloc.address == old;
    if (stays_in_place_) {
      const uint64_t size = std::clamp<uint64_t>(alloc.size, 1, HeldBlock::kMaxSize);
      EndBlocksIn(*block, size, stream, when.time);
      held = TakeBlocksOff(*block);
    }
    earlier_reallocs = TakeChain(*block);
    const bool temporary = alloc.address == 0 && threads_[block->thread].last_alloc == old &&
                           options_.sample_bytes == 0;
    CountFree(*block, stream, when.time, temporary);
    stays_in_place_ = false;
    if (block == table_.Find(old)) {
      table_.Erase(block);
    } else {
      shadows_.erase(old);
    }
  }
  if (alloc.address == 0) return true;  // realloc(p, 0) was a free
  HeapSite::Highest before;
  if (!held.empty()) before = HighestBefore(sites_[SiteOf(alloc.stack, alloc.function)]);
  Alloc(stream, alloc, when, true, waits);
  HeldBlock* const result = table_.Find(alloc.address);
  if (result != nullptr && !result->has(HeldBlock::kUncounted)) {
    reallocations_ += WeightOf(alloc.size).blocks;
  }
  // The block of the selection ended there, whatever it became.
  if (old_site != 0 && result != nullptr && result->has(HeldBlock::kUncounted) &&
      !result->has(HeldBlock::kStopped)) {
    usage_.HandedOut(old_site, result->site);
  }
  if (old_site != 0 && result != nullptr && !result->has(HeldBlock::kUncounted)) {
    // The site of a block that grew did not fall in between.
    if (result->site == old_site) {
      sites_[old_site].interval_low = std::min(low, sites_[old_site].live_bytes);
    }
    const uint32_t chain = earlier_reallocs + 1;
    KeepChain(result, chain);
    // A block that has a mapping of its own before and after was moved by mremap,
    // which copies nothing.
    const bool copied = alloc.address != old && !(was_mapped && alloc.mapped);
    usage_.Reallocated(old_site, result->site, copied, old_size, result->size(), chain);
  }
  if (!held.empty()) PutBlocksOn(alloc.address, held, before);
  return true;
}

}  // namespace memtrace::report
