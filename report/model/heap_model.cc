#include "report/model/heap_model.h"

#include <algorithm>
#include <tuple>

#include "report/model/blocks_by_address.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {
namespace {

// A block this much older than an alloc of the same address was freed in between,
// though the trace does not say so: no thread lags so far behind the others.
constexpr uint64_t kReorderNs = 100'000'000;

// The unit of a block's weight, for sums that are not whole numbers.
double UnitOf(uint64_t sample_bytes) {
  return sample_bytes == 0 ? 1 : 1 << SampleWeight::kFractionBits;
}

using TimeOfAddress = absl::flat_hash_map<uint64_t, uint64_t>;

bool TakePartner(uint64_t address, uint64_t time, TimeOfAddress* times) {
  const auto at = times->find(address);
  if (at == times->end()) return false;
  const bool near = std::max(at->second, time) - std::min(at->second, time) <= kReorderNs;
  times->erase(at);
  return near;
}

void KeepForPartner(uint64_t address, uint64_t time, TimeOfAddress* times) {
  constexpr size_t kMost = 1 << 16;
  if (times->size() >= kMost) {
    absl::erase_if(*times, [&](const auto& each) { return each.second + kReorderNs < time; });
    if (times->size() >= kMost) return;
  }
  (*times)[address] = time;
}

}  // namespace

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

void HeapModel::OpenSeries(SiteState& site) {
  series_.Open(static_cast<size_t>(&site - sites_.data()), SeriesNow(site));
  site.interval_low = site.interval_high = site.live_bytes;
}

// An alloc of a live address that had to be taken: the caller overwrites `block`.
void HeapModel::Collide(size_t stream, const HeldBlock& block, EventTime when) {
  const uint64_t address = block.address();
  const auto old = shadows_.find(address);
  if (old != shadows_.end()) {
    // One in limbo will be freed by its thread; here and now, for there is no room.
    if (!old->second.block.has(HeldBlock::kLimbo)) CountUnseenFree(address, when.time);
    CountFree(old->second.block, old->second.block.thread, when.time, false);
    shadows_.erase(old);
  }
  const bool limbo = block.has(HeldBlock::kLimbo);  // then its own thread will free it
  const bool recent = block.time_ns + kReorderNs >= when.low;
  if (limbo || (!options_.exact && block.thread != stream && recent)) {
    const bool surely_first =
        options_.exact || block.time_ns + options_.slack_ns < when.low;
    shadows_[address] = {block, when.high, surely_first};
  } else {
    CountUnseenFree(address, when.time);
    CountFree(block, block.thread, when.time, false);
  }
}

// A free of an address with a block in the shadow of `block`. False: no such address.
bool HeapModel::FreeShadowed(size_t stream, HeldBlock* block, EventTime when) {
  const uint64_t address = block->address();
  const auto at = shadows_.find(address);
  if (at == shadows_.end()) return false;
  const Shadow shadow = at->second;
  if (shadow.block.has(HeldBlock::kLimbo)) return false;
  shadows_.erase(at);
  const bool of_second = block->thread == stream;
  const bool too_late = shadow.surely_first && shadow.second_high != UINT64_MAX &&
                        when.low > shadow.second_high + options_.slack_ns;
  if (!of_second && !too_late) {
    CountFree(shadow.block, stream, when.time, false);
    return true;
  }
  CountFree(*block, stream, when.time, false);
  if (too_late) {
    CountUnseenFree(address, when.time);
    CountFree(shadow.block, shadow.block.thread, when.time, false);
    table_.Erase(block);
  } else {
    *block = shadow.block;
  }
  return true;
}

void HeapModel::AddDebt(size_t stream, uint64_t address, EventTime when) {
  Debt debt{stream, when.time, when.high};
  if (options_.exact) {
    WriteOff(address, debt);
    return;
  }
  if (!doubtful_frees_.empty()) {
    DoubtfulFree& last = doubtful_frees_[DoubtIndex(address)];
    const bool may_be_later = last.debt.high >= when.low && last.debt.stream != stream;
    if (last.address == address && may_be_later) {
      debt = last.debt;
      last = {};
    }
  }
  const auto [at, added] = debts_.try_emplace(address, debt);
  if (!added) {
    WriteOff(address, at->second);
    at->second = debt;
  }
  if (debts_.size() < look_through_debts_at_) return;
  // In a fork child there may be as many as the parent had blocks.
  absl::erase_if(debts_, [&](const auto& debt) {
    const uint64_t last = std::max(debt.second.time, debt.second.high);
    if (last == UINT64_MAX || last + kReorderNs >= when.low) return false;
    WriteOff(debt.first, debt.second);
    return true;
  });
  look_through_debts_at_ = std::max<size_t>(4096, debts_.size() * 2);
}

// `block` was allocated just now. Was it freed before that?
void HeapModel::PayDebt(size_t stream, HeldBlock* block, EventTime when) {
  const auto at = debts_.find(block->address());
  if (at == debts_.end()) return;
  const Debt debt = at->second;
  debts_.erase(at);
  // The order of events of one thread is known.
  const bool may_be_earlier =
      debt.stream != stream &&
      (debt.high == UINT64_MAX || when.low <= debt.high + options_.slack_ns);
  if (!may_be_earlier) {
    WriteOff(block->address(), debt);
    return;
  }
  // It may have been too early again: for the next block at this address.
  if (!doubtful_frees_.empty())
    doubtful_frees_[DoubtIndex(block->address())] = {block->address(), debt};
  CountFree(*block, debt.stream, debt.time, false);
  const auto shadow = shadows_.find(block->address());
  if (shadow != shadows_.end()) {
    *block = shadow->second.block;
    shadows_.erase(shadow);
  } else {
    table_.Erase(block);
  }
}

// Nobody can have allocated what it freed.
void HeapModel::WriteOff(uint64_t address, const Debt& debt) {
  if (!InRange(debt.time) || !threads_[debt.stream].selected) return;
  if (TakePartner(address, debt.time, &missing_frees_)) {
    --unseen_frees_;
    ++unordered_;
    return;
  }
  ++unknown_frees_;
  if (first_unknown_frees_.size() < (options_.forked ? kMostOfForkedChild : kMostUnknownFrees)) {
    first_unknown_frees_.push_back({address, debt.stream});
  }
  if (threads_.size() > 1 && !options_.of_lines) KeepForPartner(address, debt.time, &spare_frees_);
}

// A block at `address` was not freed, as far as the order goes that was found.
void HeapModel::CountUnseenFree(uint64_t address, uint64_t time) {
  if (!InRange(time)) return;
  if (TakePartner(address, time, &spare_frees_)) {
    --unknown_frees_;
    std::erase_if(first_unknown_frees_,
                  [&](const UnknownFree& free) { return free.address == address; });
    ++unordered_;
    return;
  }
  ++unseen_frees_;
  if (threads_.size() > 1 && !options_.of_lines) KeepForPartner(address, time, &missing_frees_);
}

HeldBlock* HeapModel::FindInLimbo(uint64_t address) {
  HeldBlock* block = table_.Find(address);
  if (block != nullptr && block->has(HeldBlock::kLimbo)) return block;
  const auto shadow = shadows_.find(address);
  if (shadow == shadows_.end() || !shadow->second.block.has(HeldBlock::kLimbo)) return nullptr;
  return &shadow->second.block;
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
  Threads& thread = threads_[stream];
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
    if (OwesFree(stream, address)) debts_.erase(address);
    return;
  }
  HeldBlock* block = FindInLimbo(address);
  if (block != nullptr) block->clear(HeldBlock::kLimbo);
  waits.Changed(address);
}

// The handler that interrupted a realloc has returned.
bool HeapModel::ResumePending(size_t stream) {
  Threads& thread = threads_[stream];
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
      SiteState& site = sites_[old_site];
      if (site.changed_at <= checkpoint_) Keep(site);
      low = site.interval_low;
    }
    threads_[stream].last_site = 0;  // this free is no container's
    stays_in_place_ = custom_ != nullptr && alloc.address == old;
    if (stays_in_place_) held = TakeBlocksOff(*block);
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
  Alloc(stream, alloc, when, true, waits);
  HeldBlock* const result = table_.Find(alloc.address);
  if (result != nullptr && !result->has(HeldBlock::kUncounted)) {
    reallocations_ += WeightOf(alloc.size).blocks;
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
  if (!held.empty()) PutBlocksOn(alloc.address, held, stream, when.time);
  return true;
}

void HeapModel::Finish(Analysis* analysis) {
  WaitList nobody;
  for (size_t stream = 0; stream < threads_.size(); ++stream) ForgetPending(stream, nobody);
  for (const auto& [address, debt] : debts_) WriteOff(address, debt);
  debts_.clear();
  // Two blocks cannot be live at one address. In order, because blocks of a pool that lie in
  // several end with the first of these.
  std::vector<uint64_t> in_shadow;
  for (const auto& [address, shadow] : shadows_) in_shadow.push_back(address);
  std::sort(in_shadow.begin(), in_shadow.end());
  for (const uint64_t address : in_shadow) {
    const Shadow& shadow = shadows_.at(address);
    if (shadow.surely_first) {
      CountUnseenFree(address, shadow.block.time_ns);
    } else {
      ++unordered_;
    }
    CountFree(shadow.block, shadow.block.thread, shadow.block.time_ns, false);
  }
  shadows_.clear();

  Totals& totals = analysis->totals;
  const HeapCounters counters = this->counters();
  totals.allocations = counters.allocations;
  totals.frees = counters.frees;
  totals.bytes_allocated = counters.bytes_allocated;
  totals.live_bytes = counters.live_bytes;
  totals.live_blocks = counters.live_blocks;
  totals.peak_live_bytes = Round(peak_bytes_);
  totals.peak_live_blocks = Round(peak_blocks_);
  totals.peak_time_ns = peak_time_ns_;
  totals.reallocations = Round(reallocations_);
  totals.failed_allocations = Round(failed_);
  totals.earlier_frees = Round(earlier_frees_);
  Coverage& coverage = analysis->coverage;
  coverage.unordered_events = unordered_;
  coverage.unseen_frees = unseen_frees_;
  coverage.stopped_allocations = stopped_allocations_;
  coverage.stopped_frees = stopped_frees_;
  (options_.forked ? coverage.inherited_frees : coverage.unknown_frees) = unknown_frees_;
  analysis->sizes = sizes_;
  for (auto* part : {&analysis->sizes.allocations, &analysis->sizes.bytes}) {
    for (uint64_t& each : *part) each = Round(each);
  }

  analysis->sites.reserve(sites_.size() - 1);
  const double unit = UnitOf(options_.sample_bytes);
  for (size_t i = 1; i < sites_.size(); ++i) {
    const SiteState& from = sites_[i];
    Site site;
    site.stack = from.stack;
    site.function = from.function;
    site.allocations = Round(from.allocations);
    site.frees = Round(from.frees);
    site.bytes_allocated = Round(from.bytes_allocated);
    site.live_bytes = Round(from.live_bytes);
    site.live_blocks = Round(from.live_blocks);
    site.peak_bytes = Round(from.peak_bytes);
    const bool unchanged = from.changed_at <= peak_event_;
    site.bytes_at_peak = Round(unchanged ? from.live_bytes : from.snapshot_bytes);
    site.blocks_at_peak = Round(unchanged ? from.live_blocks : from.snapshot_blocks);
    site.blocks_at_own_peak = Round(from.blocks_at_own_peak);
    site.freed_lifetime_ns = from.lifetime_ns / unit;
    site.wasted_bytes = Round(from.wasted_bytes);
    site.temporary = from.temporary;
    site.freed_by_other_thread = Round(from.freed_by_other_thread);
    site.largest_bytes = from.largest_bytes;
    site.first_time_ns = from.first_time_ns;
    site.last_time_ns = from.last_time_ns;
    if (options_.sample_bytes != 0) site.bytes_sample.Make() = sampled_[i];
    totals.wasted_bytes += site.wasted_bytes;
    totals.temporary_allocations += from.temporary;
    const format::StackMarker marker = stacks_->MarkerOf(from.stack);
    if (analysis->process.stack_mode != format::StackMode::kOff &&
        marker != format::StackMarker::kNone && marker != format::StackMarker::kContextEnd) {
      coverage.marked_stacks += site.allocations;
    }
    analysis->sites.push_back(site);
  }
  for (const Threads& from : threads_) {
    ThreadSummary thread;
    thread.id = ThreadId{from.serial};
    thread.allocations = Round(from.allocations);
    thread.frees = Round(from.frees);
    thread.bytes_allocated = Round(from.bytes_allocated);
    thread.temporary = from.temporary;
    thread.first_time_ns = from.first_time_ns != UINT64_MAX ? from.first_time_ns : 0;
    thread.last_time_ns = from.last_time_ns;
    analysis->threads.push_back(thread);
  }
  FinishLive(analysis);
  if (custom_ != nullptr) FinishCustom(analysis);
  FinishGrowth(analysis);
  FinishUsage(analysis);
  if (options_.keep_live_blocks) analysis->live = LiveBlocks();
  // Sites that only hold blocks from outside the selection are none of it.
  std::erase_if(analysis->sites, [](const Site& site) { return site.allocations == 0; });
}

void HeapModel::FinishUsage(Analysis* analysis) {
  for (const auto& [site, moves] : usage_.moves()) analysis->sites[site - 1].moves.Make() = moves;
  for (size_t i = 0; i < threads_.size(); ++i) {
    ThreadSummary& thread = analysis->threads[i];
    thread.held = usage_.TakeHeld(i);
    // The interval that is open ends here.
    thread.held.Set(usage_.intervals(), thread.live_bytes);
  }
  analysis->held_intervals = usage_.intervals() + 1;
  analysis->exchanges_left_out = {Round(usage_.other_exchanges().blocks),
                                  Round(usage_.other_exchanges().bytes)};
  for (const auto& [threads, exchange] : usage_.exchanges()) {
    analysis->exchanges.push_back({ThreadId{threads_[threads.first].serial},
                                   ThreadId{threads_[threads.second].serial},
                                   Round(exchange.blocks), Round(exchange.bytes)});
  }
  std::sort(analysis->exchanges.begin(), analysis->exchanges.end(),
            [](const ThreadExchange& a, const ThreadExchange& b) {
              return std::tuple(b.blocks, b.bytes, a.from, a.to) <
                     std::tuple(a.blocks, a.bytes, b.from, b.to);
            });
  // Sites move when those of no selected block are left out: by their stacks.
  std::vector<BlockEnds>& ends = analysis->block_ends;
  for (const auto& [sites, times] : usage_.handed_over()) {
    const Site& from = analysis->sites[sites.first - 1];
    ends.push_back({from.stack, analysis->sites[sites.second - 1].stack, from.function,
                    BlockEnds::By::kRealloc, times});
  }
  for (const auto& [freed, times] : usage_.freed_at()) {
    const Site& from = analysis->sites[freed.first - 1];
    ends.push_back({from.stack, StackId{freed.second}, from.function, BlockEnds::By::kFree, times});
  }
  std::sort(ends.begin(), ends.end(), [](const BlockEnds& a, const BlockEnds& b) {
    return std::tuple(b.times, a.from, a.from_function, a.to, a.by) <
           std::tuple(a.times, b.from, b.from_function, b.to, b.by);
  });
  analysis->frees_with_stack = usage_.frees_with_stack();
}

// Fills in what only the blocks that are live at the end tell.
void HeapModel::FinishLive(Analysis* analysis) {
  const double unit = UnitOf(options_.sample_bytes);
  std::vector<uint64_t> mapped_live(sites_.size());
  std::vector<uint64_t> first_time(sites_.size(), UINT64_MAX);
  // In integers: the sum is the same in whatever order the table has the blocks.
  std::vector<unsigned __int128> time_sums(sites_.size());
  const auto add = [&](const HeldBlock& block) {
    if (block.has(HeldBlock::kUncounted)) return;
    Site& site = analysis->sites[block.site - 1];
    const uint64_t size = block.size();
    const SampleWeight weight = WeightOf(size);
    if (options_.sample_bytes != 0) site.live_sample.Make().Add(size, options_.sample_bytes);
    site.live_wasted_bytes += block.waste() * weight.blocks;
    time_sums[block.site] += static_cast<unsigned __int128>(block.time_ns) * weight.blocks;
    uint64_t& first = first_time[block.site];
    first = std::min(first, block.time_ns);
    site.live_last_time_ns = std::max(site.live_last_time_ns, block.time_ns);
    ThreadSummary& thread = analysis->threads[block.thread];
    thread.live_bytes += weight.bytes;
    thread.live_blocks += weight.blocks;
    const size_t size_class = std::bit_width(size);
    analysis->sizes.live_blocks[size_class] += weight.blocks;
    analysis->sizes.live_bytes[size_class] += weight.bytes;
    if (block.has(HeldBlock::kMapped))
      mapped_live[block.site] += MappingBytes(size + block.waste()) * weight.blocks;
  };
  if (options_.sample_bytes == 0) {
    table_.ForEach(add);
  } else {  // sums of fractions: in the order of addresses, for the same reason
    std::vector<HeldBlock> blocks;
    table_.ForEach([&](const HeldBlock& block) { blocks.push_back(block); });
    SortByAddress(blocks);
    for (const HeldBlock& block : blocks) add(block);
  }
  for (size_t i = 1; i < sites_.size(); ++i) {
    Site& site = analysis->sites[i - 1];
    site.live_wasted_bytes = Round(site.live_wasted_bytes);
    site.live_time_sum_ns = static_cast<double>(time_sums[i]) / unit;
  }
  for (ThreadSummary& thread : analysis->threads) {
    thread.live_bytes = Round(thread.live_bytes);
    thread.live_blocks = Round(thread.live_blocks);
  }
  for (auto* part : {&analysis->sizes.live_blocks, &analysis->sizes.live_bytes}) {
    for (uint64_t& each : *part) each = Round(each);
  }
  for (const Site& site : analysis->sites) {
    analysis->totals.bytes_sample.Add(site.bytes_sample);
    analysis->totals.live_sample.Add(site.live_sample);
  }
  for (size_t i = 1; i < sites_.size(); ++i) {
    if (first_time[i] != UINT64_MAX) analysis->sites[i - 1].live_first_time_ns = first_time[i];
    if (sites_[i].mapped_calls == 0) continue;
    MappingSite mapping;
    mapping.kind = MappingSite::Kind::kMappedBlock;
    mapping.stack = sites_[i].stack;
    mapping.calls = Round(sites_[i].mapped_calls);
    mapping.bytes = Round(sites_[i].mapped_bytes);
    mapping.live_bytes = Round(mapped_live[i]);
    analysis->mappings.push_back(mapping);
    analysis->memory_map.mapped_blocks_bytes += mapping.live_bytes;
  }
}

}  // namespace memtrace::report
