// HeapModel: the heap of the traced program, event by event: what is live, which
// site and thread it belongs to, how much there was at the highest point.
//
// The functions that take an event return false for "not yet" (event_order.h):
// the address is live already, or not yet, or in the middle of a realloc. With
// `force` they always take it. Then either the trace lacks something or the order
// so far was wrong, and what comes later tells which:
//
//   - A free of an address that is not live is kept as a debt. An alloc of it by
//     another thread that may have been earlier pays the debt: the block is counted,
//     and freed at once. A debt that nobody can pay any more is a free of a block
//     whose allocation the trace does not have (in a fork child: of the parent's).
//     When another thread's free ended the block shortly before, and may have been
//     later, it was that free which was taken too early: the debt becomes its. A
//     thread with a debt at an address waits before it allocates it again.
//     A free that was written off and a block at its address that was not freed at
//     about that time belong together; they count as an event without order.
//   - An alloc of a live address puts the block that was there in the shadow of the
//     new one. A free by the thread of the new block ends that (its order is known)
//     and the other comes out of the shadow; another free ends the one in the shadow.
//     When the free is too late for that, or the first block too old, then its own
//     free is what the trace lacks, and it counts as freed. Two that remain at one
//     address at the end: the first counts as freed, and as unordered if it was not
//     surely the first.
//
// Where the order is exact (event_order.h) there are no debts: a free of an address that
// is not live is of a block that the trace does not have. And an alloc of a block in the
// middle of a realloc by another thread tells that the realloc has moved it already.
//
// So whatever order was found, every alloc and every free is counted once, and as
// many blocks remain at an address as the trace has allocs more than frees.
//
// A realloc's intent puts the block in limbo: nobody may allocate or free it, and
// nothing is counted. The result counts one free and one allocation; a NULL result
// takes the block out of limbo (or frees it, when the size was 0).
//
// Custom blocks (custom_blocks.h) are in all figures like any other, but for two that are of what
// a thread did just before: they are never temporary, and no container's. A live byte is counted
// once: that of a custom block is taken off the site and the thread of the next block further out
// that counts, while the former lives.
//
// Peaks are exact in the order given. bytes_at_peak of a site costs one compare an
// event: a site keeps what it held when it first changed after the latest peak, and
// a site that has not changed since holds it still. The series of a site (growth/site_series.h)
// hangs on the same compare.
//
// Single-threaded. Hot: what is on the path of an event is in this header, and for most events in
// heap_run.h.

#ifndef MEMTRACE_REPORT_MODEL_HEAP_MODEL_H_
#define MEMTRACE_REPORT_MODEL_HEAP_MODEL_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "report/base/page.h"
#include "report/findings/heap_figures.h"
#include "report/findings/invalid_free.h"
#include "report/findings/lifetime_histogram.h"
#include "report/findings/range.h"
#include "report/findings/sampling.h"
#include "report/growth/late_frees.h"
#include "report/growth/left_out.h"
#include "report/growth/site_series.h"
#include "report/model/custom_blocks.h"
#include "report/model/heap_site.h"
#include "report/model/live_table.h"
#include "report/model/order_doubts.h"
#include "report/trace/event_order.h"
#include "report/trace/stack_table.h"
#include "report/usage/block_filter.h"
#include "report/usage/usage_fold.h"

namespace memtrace::report {

struct Analysis;
class TraceReader;

// When an event was, for the heap model.
struct EventTime {
  uint64_t time;  // the likely one
  uint64_t low;   // not before
  uint64_t high;  // not after
};

struct HeapAlloc {
  format::AllocFunction function;
  uint64_t address;  // 0: failed
  uint64_t size;
  uint64_t waste;    // usable minus requested, 0 if not known
  StackId stack;
  bool mapped;       // has a mapping of its own
  bool stopped = false;  // while the program had stopped the recording
};

struct HeapCounters {
  uint64_t allocations = 0;
  uint64_t frees = 0;
  uint64_t bytes_allocated = 0;
  uint64_t live_bytes = 0;
  uint64_t live_blocks = 0;
  uint64_t live_wasted_bytes = 0;  // at most 65535 of each block
};

class HeapModel {
 public:
  struct Options {
    Range range;
    absl::flat_hash_set<uint32_t> threads;  // serials; empty: all
    bool keep_live_blocks = false;
    bool forked = false;
    uint64_t page_bytes = kPageBytes;
    uint64_t slack_ns = 1000;  // events this much apart may have been in the other order
    bool exact = false;        // the order is true: what does not fit, the trace lacks
    uint64_t sample_bytes = 0;  // of the library: the trace is of a sample (sampling.h)
    BlockFilter filter;
    const ChosenBlocks* chosen = nullptr;  // by number of allocation; null: all
    LifetimeWatch* watch = nullptr;        // told of every block
    bool of_lines = false;  // exact, and no race of a tracer's either: an imported log's

    // What is needed to tell in which order a trace's events happened; the rest as it is above.
    static Options OrderOf(const TraceReader& reader);
  };

  HeapModel(const Options& options, StackTable* stacks);

  // Tells which thread's events stream number `stream` has. `handlers_of`: the thread whose signal
  // handlers' events they are, if they are such.
  void AddThread(size_t stream, uint32_t serial, uint32_t handlers_of = 0);

  // Inlined where the compiler would not: the fields of `alloc` then need not go through memory.
  [[gnu::always_inline]] bool Alloc(size_t stream, const HeapAlloc& alloc, EventTime when,
                                    bool force, WaitList& waits) {
    if (alloc.address == 0) {
      CountFailure(stream, alloc, when.time);
      return true;
    }
    if (doubts_.has_debts() && !force && doubts_.Owes(stream, alloc.address)) [[unlikely]] {
      return false;
    }
    bool inserted;
    HeldBlock* block = table_.FindOrInsert(alloc.address, &inserted);
    if (!inserted) [[unlikely]] {
      if (!force) return false;
      Collide(stream, *block, when);
    }
    Place(stream, block, alloc, when.time);
    waits.Changed(alloc.address);
    if (doubts_.has_debts()) [[unlikely]] PayDebt(stream, block, when);
    return true;
  }

  bool Free(size_t stream, uint64_t address, EventTime when, bool force, WaitList& waits) {
    if (address == 0) return true;
    HeldBlock* block = table_.Find(address);
    if (block == nullptr || block->has(HeldBlock::kLimbo)) [[unlikely]] {
      if (!force) return false;
      AddDebt(stream, address, when);
      return true;
    }
    if (!shadows_.empty() && FreeShadowed(stream, block, when)) [[unlikely]] return true;
    HeapThread& owner = threads_[block->thread];
    // In a sample this is not known: the thread may have allocated in between a block
    // that was not sampled.
    const bool temporary = owner.last_alloc == address && options_.sample_bytes == 0;
    if (block->thread != stream || when.high - when.low > kLongSpanNs) {
      RememberFree(stream, address, when);
    }
    CountFree(*block, stream, when.time, temporary);
    table_.Erase(block);
    waits.Changed(address);
    return true;
  }

  // Free(), for a trace that has the stacks of frees.
  bool FreeWithStack(size_t stream, uint64_t address, StackId stack, EventTime when, bool force,
                     WaitList& waits);

  bool ReallocIntent(size_t stream, uint64_t address, EventTime when, bool force, WaitList& waits);
  bool ReallocResult(size_t stream, const HeapAlloc& alloc, EventTime when, bool force,
                     WaitList& waits);

  // These take what the program told by memtrace.h. `pool` is the address of a pool; 0: of none.
  void CustomAlloc(size_t stream, const HeapAlloc& alloc, uint64_t pool, uint64_t time);
  void CustomFree(size_t stream, uint64_t address, uint64_t pool, uint64_t time);
  void CreatePool(size_t stream, uint64_t pool, std::string_view name, StackId stack,
                  uint64_t time);
  void DestroyPool(size_t stream, uint64_t pool, uint64_t time);
  void IgnoreBlock(uint64_t address);
  // Begins or ends memtrace_disable() for the thread with this serial and for its signal handlers
  // (see AddThread).
  void DisableLeaks(uint32_t serial, bool disabled);

  // Blocks of a thread were lost: what it announced is void.
  void ForgetPending(size_t stream, WaitList& waits);

  void Prefetch(uint64_t address) const { table_.Prefetch(address); }
  bool WantsPrefetch() const { return table_.WantsPrefetch(); }

  // After the last event: what is live now, by block; and everything into `analysis`:
  // totals, sites, threads' counts, sizes, mapped blocks, parts of coverage.
  void Finish(Analysis* analysis);

  // While the program had stopped the recording: in no figure.
  uint64_t stopped_allocations() const { return stopped_allocations_; }
  uint64_t stopped_frees() const { return stopped_frees_; }
  HeapCounters counters() const {
    return {Round(counters_.allocations), Round(counters_.frees), Round(counters_.bytes_allocated),
            Round(counters_.live_bytes), Round(counters_.live_blocks),
            Round(counters_.live_wasted_bytes)};
  }
  // The block that the stream announced a realloc of; 0 none.
  uint64_t PendingRealloc(size_t stream) const { return threads_[stream].pending; }
  uint64_t live_table_size() const { return table_.size(); }
  const HeldBlock* FindLive(uint64_t address) { return table_.Find(address); }
  bool IsLive(uint64_t address) const { return table_.Contains(address); }

  // All blocks that are live now, in no order; those that hold custom blocks are left out, for
  // these take their place. A block in the middle of a realloc has kLimbo.
  std::vector<HeldBlock> CopyLive() const;
  // The same, and of those that hold custom blocks what is left beside these, in pieces: every live
  // byte is in one.
  std::vector<HeldBlock> CopyLiveBytes() const;
  // HeldBlock::site has a value from 1 to site_count() - 1.
  size_t site_count() const { return sites_.size(); }
  // The site of `stack` and `function`; adds it if it is new.
  uint32_t SiteOf(StackId stack, format::AllocFunction function) {
    if (stack.value < site_of_stack_.size()) {
      const uint32_t site = site_of_stack_[stack.value];
      if (site != 0 && sites_[site].function == function) return site;
    }
    return FindOrAddSite(stack, function);
  }
  size_t thread_count() const { return threads_.size(); }
  StackId SiteStack(uint32_t site) const { return sites_[site].stack; }
  format::AllocFunction SiteFunction(uint32_t site) const { return sites_[site].function; }
  // The first frees that found no block to free; another pass finds out more about them
  // (invalid_frees.h). They are part of no state: that pass is for the whole of a run.
  static constexpr size_t kMostUnknownFrees = 256;
  static constexpr size_t kMostOfForkedChild = 4096;  // which frees what its parent allocated
  const std::vector<UnknownFree>& first_unknown_frees() const { return first_unknown_frees_; }
  // Whether there are events whose order is not known yet.
  bool has_doubts() const { return doubts_.has_debts() || !shadows_.empty(); }

  // Ends the current interval of the series of sites and threads, `run_ns` after
  // the begin of the range.
  void NextInterval(uint64_t run_ns) {
    late_frees_.SetRun(run_ns);
    interval_event_ = checkpoint_ = event_;
    series_.NextInterval();
    usage_.NextInterval(threads_.size(),
                        [this](size_t i) { return Round(threads_[i].live_bytes); });
  }
  // Makes one interval of each two, so that there is room for more.
  void MergeIntervals() {
    series_.MergePairs();
    usage_.MergePairs();
    left_out_.MergePairs();
  }

  // Writes the state into an archive, or reads it out of one (state/state_archive.h).
  template <typename Archive>
  void Fold(Archive& archive);
  // Zeroes all figures but keeps the live blocks, which then count for nothing. Called
  // when a pass takes up a state from before its selected range (pass_state.h): nothing
  // so far is of the selection.
  void ForgetFigures();

  // The most live bytes since the last call, for the timeline. Starts anew with what is live now.
  uint64_t TakeWindowMax() {
    if (!everything_) left_out_.NextPoint();
    const uint64_t max = window_max_;
    window_max_ = counters_.live_bytes;
    return Round(max);
  }

 private:
  friend class HeapRun;  // the same for the events that there are most of

  // Reallocs of one thread that signal handlers interrupt, each the one before.
  static constexpr size_t kMostInterrupted = 8;
  uint32_t FindOrAddSite(StackId stack, format::AllocFunction function);
  void DropPending(size_t stream, WaitList& waits);
  bool ResumePending(size_t stream);

  // Whether a new block is of the selection. Called once for each block, in the order of events.
  bool IsChosen(const HeapThread& thread, const HeapSite& site, uint64_t size, uint64_t time) {
    const uint64_t number = number_++;
    return thread.selected && site.chosen && InRange(time) &&
           options_.filter.sizes.Contains(size) &&
           (options_.chosen == nullptr || options_.chosen->Get(number));
  }
  void CountFailure(size_t stream, const HeapAlloc& alloc, uint64_t time) {
    if (!everything_ &&
        !(options_.chosen == nullptr && threads_[stream].selected && InRange(time) &&
          options_.filter.sizes.Contains(alloc.size) &&
          (!options_.filter.sites || options_.filter.sites(alloc.stack)))) {
      return;
    }
    failed_ += WeightOf(alloc.size).blocks;
  }
  // Whether `block` was allocated before the range, and would be of the selection otherwise.
  bool IsEarlier(const HeldBlock& block) const {
    return block.time_ns < options_.range.from_ns && threads_[block.thread].selected &&
           sites_[block.site].chosen && options_.filter.sizes.Contains(block.size());
  }
  bool InRange(uint64_t time) const {
    return time - options_.range.from_ns <= options_.range.to_ns - options_.range.from_ns;
  }

  // Makes `block`, which has its address, the block of `alloc`, and counts it.
  [[gnu::always_inline]] void Place(size_t stream, HeldBlock* block, const HeapAlloc& alloc,
                                    uint64_t time) {
    HeapThread& thread = threads_[stream];
    const uint64_t size = std::min(alloc.size, HeldBlock::kMaxSize);
    block->address_flags = alloc.address;
    block->set_size(size, std::min(alloc.waste, HeldBlock::kMaxWaste));
    block->thread = static_cast<uint32_t>(stream);
    block->time_ns = time;
    const uint32_t site_index = SiteOf(alloc.stack, alloc.function);
    block->site = site_index;
    thread.last_alloc = alloc.address;
    if (alloc.mapped) block->set(HeldBlock::kMapped);
    if (thread.leaks_disabled) [[unlikely]] block->set(HeldBlock::kIgnored);
    if (custom_ != nullptr) [[unlikely]] custom_->AddMallocBlock(alloc.address);
    if (alloc.stopped) [[unlikely]] {
      ++stopped_allocations_;
      block->set(HeldBlock::kStopped);
    }
    thread.last_size = size;
    thread.last_site = site_index;
    if (options_.watch != nullptr) [[unlikely]] options_.watch->Placed(alloc.address, false, time);
    if (!everything_ || alloc.stopped) [[unlikely]] {
      if (!IsChosen(thread, sites_[site_index], size, time) || alloc.stopped) {
        block->set(HeldBlock::kUncounted);
        thread.last_site = 0;  // no container of the selection grew
        if (InRange(time) && !alloc.stopped) {
          left_out_.Allocated(site_index, time, WeightOf(size).blocks);
        }
        return;
      }
    }
    const SampleWeight weight = WeightOf(size);
    HeapSite& site = sites_[site_index];
    CountAllocation(thread, site, site_index, size, weight, /*taken_bytes=*/0, time);
    site.wasted_bytes += alloc.waste * weight.blocks;
    if (alloc.mapped) {
      site.mapped_calls += weight.blocks;
      site.mapped_bytes += MappingBytes(size + alloc.waste) * weight.blocks;
    }
    if (options_.sample_bytes != 0) [[unlikely]] {
      sampled_[site_index].Add(size, options_.sample_bytes);
    }
    counters_.live_wasted_bytes += block->waste() * weight.blocks;
  }

  // What an allocation adds to the figures of its thread, its site, its size and of all.
  // `taken_bytes`: of them what was live already, in the block that a custom one lies in.
  [[gnu::always_inline]] void CountAllocation(HeapThread& thread, HeapSite& site, uint32_t index,
                                              uint64_t size, const SampleWeight& weight,
                                              uint64_t taken_bytes, uint64_t time) {
    thread.allocations += weight.blocks;
    thread.bytes_allocated += weight.bytes;
    thread.live_bytes += weight.bytes;
    thread.first_time_ns = std::min(thread.first_time_ns, time);
    thread.last_time_ns = std::max(thread.last_time_ns, time);

    BeforeChange(site);
    if (site.allocations == 0) site.first_time_ns = time;
    site.allocations += weight.blocks;
    site.last_time_ns = time;
    site.bytes_allocated += weight.bytes;
    site.live_bytes += weight.bytes;
    site.live_blocks += weight.blocks;
    site.Rose();
    site.largest_bytes = std::max(site.largest_bytes, size);
    const size_t size_class = std::bit_width(size);
    sizes_.allocations[size_class] += weight.blocks;
    sizes_.bytes[size_class] += weight.bytes;
    ++site_sizes_[index][std::min(size_class, kSiteSizeClasses - 1)];

    counters_.allocations += weight.blocks;
    counters_.bytes_allocated += weight.bytes;
    counters_.live_bytes += weight.bytes - taken_bytes;
    counters_.live_blocks += weight.blocks;
    window_max_ = std::max(window_max_, counters_.live_bytes);
    if (counters_.live_bytes > peak_bytes_) {
      peak_bytes_ = counters_.live_bytes;
      peak_blocks_ = counters_.live_blocks;
      peak_time_ns_ = time;
      peak_event_ = checkpoint_ = event_;
    }
  }

  // A site has a block less, which lived this long.
  void Fell(HeapSite& site, uint32_t index, uint64_t time, uint64_t lifetime_ns, uint64_t size) {
    if (site.frees == 0) [[unlikely]] site.first_free_ns = time;
    site.falling = 1;
    site.interval_low = std::min(site.interval_low, site.live_bytes);
    // Below 2^63, and signed numbers are converted in one instruction.
    const auto lifetime = static_cast<double>(static_cast<int64_t>(lifetime_ns));
    lifetimes_[index].AddWhole(lifetime);
    if (late_frees_.IsLong(lifetime_ns)) [[unlikely]] {
      late_frees_.Add({time - lifetime_ns, time, size, index});
    }
  }

  // Counts the end of `block`, which the caller then removes.
  void CountFree(const HeldBlock& block, size_t stream, uint64_t time, bool temporary) {
    if (custom_ != nullptr && !stays_in_place_) [[unlikely]] EndBlocksIn(block, 0, stream, time);
    if (options_.watch != nullptr) [[unlikely]] {
      options_.watch->Ended(block.address(), false, block.time_ns, time);
    }
    TakeChain(block);
    HeapThread& thread = threads_[stream];
    if (block.has(HeldBlock::kUncounted)) [[unlikely]] {
      if (InRange(time)) thread.last_time_ns = std::max(thread.last_time_ns, time);
      if (block.has(HeldBlock::kStopped)) {
        ++stopped_frees_;
        return;
      }
      if (!InRange(time)) return;
      const SampleWeight weight = WeightOf(block.size());
      left_out_.Freed(block.site, time, weight.blocks);
      if (IsEarlier(block)) {
        earlier_frees_ += weight.blocks;
        left_out_.FreedEarlier(block.site, weight.bytes);
      }
      return;
    }
    thread.last_time_ns = std::max(thread.last_time_ns, time);
    const SampleWeight weight = WeightOf(block.size());
    thread.frees += weight.blocks;
    thread.first_time_ns = std::min(thread.first_time_ns, time);
    HeapSite& site = sites_[block.site];
    BeforeChange(site);
    const uint64_t lifetime_ns = time - std::min(time, block.time_ns);
    // Both are below 2^63, and signed numbers are converted in one instruction.
    site.lifetime_ns += static_cast<double>(static_cast<int64_t>(lifetime_ns)) *
                        static_cast<double>(static_cast<int64_t>(weight.blocks));
    site.live_bytes -= weight.bytes;
    site.live_blocks -= weight.blocks;
    Fell(site, block.site, time, lifetime_ns, block.size());
    site.frees += weight.blocks;
    if (block.thread != stream) {
      site.freed_by_other_thread += weight.blocks;
      usage_.FreedByOther(block.thread, stream, weight.blocks, weight.bytes);
    }
    if (thread.last_site == block.site && thread.last_alloc != block.address() &&
        UsageFold::IsContainerGrowth(block.size(), thread.last_size)) {
      usage_.ContainerGrew(block.site, block.size());
      thread.last_site = 0;  // it has its partner
    }
    threads_[block.thread].live_bytes -= weight.bytes;
    if (temporary) {
      ++site.temporary;
      ++threads_[block.thread].temporary;
    }
    counters_.frees += weight.blocks;
    counters_.live_bytes -= weight.bytes;
    counters_.live_blocks -= weight.blocks;
    counters_.live_wasted_bytes -= block.waste() * weight.blocks;
  }

  // The number of reallocs that led to `block`, which is about to end.
  uint32_t TakeChain(const HeldBlock& block) {
    const uint32_t chain = block.chain();
    return chain == HeldBlock::kLongChain ? usage_.TakeChain(block.address()) : chain;
  }
  // Notes that number for the block that the latest of them gave.
  void KeepChain(HeldBlock* block, uint32_t chain) {
    block->set_chain(std::min(chain, HeldBlock::kLongChain));
    if (chain >= HeldBlock::kLongChain) [[unlikely]] usage_.KeepChain(block->address(), chain);
  }

  void BeforeChange(HeapSite& site) {
    if (site.changed_at <= checkpoint_) Keep(site);
    site.changed_at = ++event_;
  }
  // Keeps what the site holds before it changes: for the latest peak if that came since the site
  // changed last, and for the interval of its series in which it changed last if that has ended.
  void Keep(HeapSite& site) {
    if (site.changed_at <= peak_event_) {
      site.snapshot_bytes = site.live_bytes;
      site.snapshot_blocks = site.live_blocks;
    }
    if (site.changed_at <= interval_event_) OpenSeries(site);
  }
  void OpenSeries(HeapSite& site);
  SiteSeries::Now SeriesNow(const HeapSite& site) const {
    return {Round(site.allocations),  Round(site.frees),        Round(site.live_bytes),
            Round(site.live_blocks), Round(site.interval_low), Round(site.interval_high),
            Round(site.bytes_allocated)};
  }

  SampleWeight WeightOf(uint64_t size) const { return {size, options_.sample_bytes}; }
  uint64_t Round(uint64_t units) const { return SampleWeight::Round(units, options_.sample_bytes); }

  uint64_t MappingBytes(uint64_t usable) const {
    return (usable + 16 + options_.page_bytes - 1) & ~(options_.page_bytes - 1);
  }

  // A block whose address was allocated again.
  struct Shadow {
    HeldBlock block;
    uint64_t second_high;  // not later than this, the other one was allocated
    bool surely_first;     // this one was allocated before the other
  };
  using Debt = OrderDoubts::Debt;
  static constexpr uint64_t kLongSpanNs = 4000;  // the time of an event is not well known

  void RememberFree(size_t stream, uint64_t address, EventTime when) {
    if (threads_.size() < 2 || options_.exact) return;
    doubts_.RememberFree(address, {stream, when.time, when.high});
  }
  void Collide(size_t stream, const HeldBlock& block, EventTime when);
  bool FreeShadowed(size_t stream, HeldBlock* block, EventTime when);
  void AddDebt(size_t stream, uint64_t address, EventTime when);
  void PayDebt(size_t stream, HeldBlock* block, EventTime when);
  void WriteOff(uint64_t address, const Debt& debt);
  void CountUnseenFree(uint64_t address, uint64_t time);
  HeldBlock* FindInLimbo(uint64_t address);
  void FinishLive(Analysis* analysis);
  void FinishGrowth(Analysis* analysis);
  class GrowthJudge;  // of FinishGrowth()
  void FinishUsage(Analysis* analysis);
  void FinishCustom(Analysis* analysis);
  // The live blocks of the selection, by address; a holder comes before what it holds.
  std::vector<LiveBlock> LiveBlocks() const;

  // The blocks that have custom blocks in them: addresses of malloc's, numbers of custom ones.
  struct Holders {
    absl::flat_hash_set<uint64_t> of_malloc, custom;
  };
  Holders FindHolders() const;

  CustomBlocks& custom();  // made when it is first asked for
  // Those in `block`, which ends, or of which the first `kept_bytes` stay.
  void EndBlocksIn(const HeldBlock& block, uint64_t kept_bytes, size_t stream, uint64_t time);
  void EndCustom(CustomBlocks::Blocks::iterator block, size_t stream, uint64_t time);
  void EndTogether(const std::vector<CustomBlocks::Key>& keys, size_t stream, uint64_t time);
  void CountCustomFree(CustomBlocks::Blocks::iterator block, size_t stream, uint64_t time);
  // The next block further out that counts, which has the bytes of `block` again when that ends;
  // null: none.
  const HeldBlock* CountedHolder(const CustomBlocks::Block& block);
  // Takes the bytes of `block`, which is new in `holder`, off the site and the thread of that.
  void TakeBytes(const HeldBlock& holder, CustomBlocks::Block* block);
  // The most that `site` held, to be set again once it has back, in the midst of an event, what lay
  // in a block that ends or moves: these bytes are at no moment its own.
  HeapSite::Highest HighestBefore(HeapSite& site) {
    if (site.changed_at <= checkpoint_) Keep(site);
    return site.highest();
  }
  // A realloc that leaves a holder where it is: its bytes are its own meanwhile, then what is in it
  // has them again. `before`: of the new block's site.
  std::vector<CustomBlocks::Key> TakeBlocksOff(const HeldBlock& holder);
  void PutBlocksOn(uint64_t address, const std::vector<CustomBlocks::Key>& held,
                   const HeapSite::Highest& before);

  const Options options_;
  const bool everything_;                 // no selection of any kind
  uint64_t number_ = 0;                   // of the next allocation
  StackTable* const stacks_;
  LiveTable table_;
  std::unique_ptr<CustomBlocks> custom_;  // from the first custom block on
  bool stays_in_place_ = false;           // a realloc, which ends no custom block
  std::vector<HeapThread> threads_;          // by stream
  bool leaks_were_disabled_ = false;      // of any of them, at any time
  std::vector<HeapSite> sites_;          // [0] unused
  std::vector<LifetimeHistogram> lifetimes_;  // by site
  std::vector<std::array<uint32_t, kSiteSizeClasses>> site_sizes_;  // by site
  SiteSeries series_;                     // by site
  LateFrees late_frees_;
  LeftOut left_out_;                      // of a selection
  UsageFold usage_;
  std::vector<SampledSum> sampled_;       // by site, of what it allocated; only of a sample
  std::vector<uint32_t> site_of_stack_;   // by StackId; the first of a chain
  absl::flat_hash_map<uint64_t, Shadow> shadows_;  // by address
  OrderDoubts doubts_;
  HeapCounters counters_;
  SizeHistogram sizes_;
  uint64_t event_ = 0;                    // changes of sites so far
  uint64_t peak_event_ = 0;
  uint64_t interval_event_ = 0;           // the last one before the open interval
  uint64_t checkpoint_ = 0;               // the later of these two
  uint64_t peak_bytes_ = 0;
  uint64_t peak_blocks_ = 0;
  uint64_t peak_time_ns_ = 0;
  uint64_t window_max_ = 0;
  uint64_t failed_ = 0;
  uint64_t reallocations_ = 0;
  uint64_t earlier_frees_ = 0;
  uint64_t unordered_ = 0;
  uint64_t unknown_frees_ = 0;
  std::vector<UnknownFree> first_unknown_frees_;
  uint64_t unseen_frees_ = 0;
  uint64_t stopped_allocations_ = 0;
  uint64_t stopped_frees_ = 0;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_HEAP_MODEL_H_
