// The end of a HeapModel: what the analysis takes from it. How each site grew is told in
// heap_model_growth.cc.

#include <algorithm>

#include "report/findings/analysis.h"
#include "report/model/blocks_by_address.h"
#include "report/model/heap_model.h"

namespace memtrace::report {
namespace {

// The unit of a block's weight, for sums that are not whole numbers.
double UnitOf(uint64_t sample_bytes) {
  return sample_bytes == 0 ? 1 : 1 << SampleWeight::kFractionBits;
}

}  // namespace

void HeapModel::Finish(Analysis* analysis) {
  WaitList nobody;
  for (size_t stream = 0; stream < threads_.size(); ++stream) ForgetPending(stream, nobody);
  doubts_.WriteOffAllDebts(
      [this](uint64_t address, const Debt& debt) { WriteOff(address, debt); });
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

  const SampledSum no_samples{.sample_bytes = static_cast<double>(options_.sample_bytes)};
  totals.bytes_sample = totals.live_sample = no_samples;
  analysis->sites.reserve(sites_.size() - 1);
  const double unit = UnitOf(options_.sample_bytes);
  for (size_t i = 1; i < sites_.size(); ++i) {
    const HeapSite& from = sites_[i];
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
    if (options_.sample_bytes != 0) {
      site.bytes_sample.Make() = sampled_[i];
      site.live_sample.Make() = no_samples;
    }
    totals.wasted_bytes += site.wasted_bytes;
    totals.temporary_allocations += from.temporary;
    const format::StackMarker marker = stacks_->MarkerOf(from.stack);
    if (analysis->process.stack_mode != format::StackMode::kOff &&
        marker != format::StackMarker::kNone && marker != format::StackMarker::kContextEnd) {
      coverage.marked_stacks += site.allocations;
    }
    analysis->sites.push_back(site);
  }
  for (const HeapThread& from : threads_) {
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
  auto handed_over = usage_.handed_over();
  for (const auto& [sites, times] : usage_.handed_out()) handed_over[sites] += times;
  for (const auto& [sites, times] : handed_over) {
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
  if (custom_ != nullptr) {
    for (const auto& [key, block] : custom_->blocks()) add(block.held);
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
