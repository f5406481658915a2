// UsageFold: what the tables want of a block's way besides what the heap model counts: which
// threads free whose blocks, how blocks are reallocated and containers grow, and what each thread
// held over time.
//
// What is not on the path of every event is in usage_fold.cc. Single-threaded.

#ifndef MEMTRACE_REPORT_USAGE_USAGE_FOLD_H_
#define MEMTRACE_REPORT_USAGE_USAGE_FOLD_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "report/findings/held_series.h"
#include "report/findings/usage.h"

namespace memtrace::report {

class UsageFold {
 public:
  // Pairs of threads that are told apart: of programs with a thread for each request there would be
  // as many as events.
  static constexpr size_t kMostExchanges = 1 << 16;

  // A block of `owner` was freed by another thread.
  void FreedByOther(size_t owner, size_t by, uint64_t blocks, uint64_t bytes) {
    Exchange& exchange = ExchangeOf({static_cast<uint32_t>(owner), static_cast<uint32_t>(by)});
    exchange.blocks += blocks;
    exchange.bytes += bytes;
  }

  // The realloc of a block of `old_site` gave one of `site`; `copied`: elsewhere, other than by
  // mremap. Of a sample not weighted. `chain`: how many have given this block now.
  void Reallocated(uint32_t old_site, uint32_t site, bool copied, uint64_t old_size, uint64_t size,
                   uint32_t chain);
  // The same of a selection that the new block is none of: an end, and no move.
  void HandedOut(uint32_t old_site, uint32_t site) {
    if (old_site != site) ++handed_out_[{old_site, site}];
  }
  // These keep the numbers of reallocs that are HeldBlock::kLongChain or more, which a
  // HeldBlock cannot hold.
  void KeepChain(uint64_t address, uint32_t chain) { chains_[address] = chain; }
  uint32_t TakeChain(uint64_t address) {
    const auto chain = chains_.find(address);
    if (chain == chains_.end()) return 0;
    const uint32_t length = chain->second;
    chains_.erase(chain);
    return length;
  }

  // A block was freed directly after its thread had allocated one of the same site that is half
  // as large again to two and a half times as large: as std::vector and hash tables do.
  static bool IsContainerGrowth(uint64_t old_size, uint64_t new_size) {
    return new_size >= old_size + old_size / 3 && new_size <= 2 * old_size + old_size / 2 + 64;
  }
  void ContainerGrew(uint32_t site, uint64_t copied) {
    SiteMoves& moves = MovesOf(site);
    ++moves.container_growths;
    moves.container_copied_bytes += copied;
  }

  // A block was freed where `stack` is.
  void FreedAt(uint32_t site, StackId stack) { ++freed_at_[{site, stack.value}]; }
  void FreeHasStack() { ++frees_with_stack_; }

  // At the end of an interval of the series: what the threads hold.
  template <typename LiveOf>
  void NextInterval(size_t threads, LiveOf live_of) {
    if (held_.size() < threads) held_.resize(threads);
    for (size_t i = 0; i < threads; ++i) {
      held_[i].Set(interval_, live_of(i));
    }
    ++interval_;
  }
  void MergePairs() {
    for (HeldSeries& thread : held_) thread.MergePairs();
    interval_ /= 2;
  }

  const absl::flat_hash_map<uint32_t, SiteMoves>& moves() const { return moves_; }
  struct Exchange {
    uint64_t blocks = 0, bytes = 0;
  };
  using Threads = std::pair<uint32_t, uint32_t>;  // that allocated, that freed: streams
  const absl::flat_hash_map<Threads, Exchange>& exchanges() const { return exchanges_; }
  // The sum of all other pairs of threads.
  const Exchange& other_exchanges() const { return other_exchanges_; }
  // How many blocks went from a site to another one, whose realloc took them over.
  const absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint64_t>& handed_over() const {
    return handed_over_;
  }
  // And those whose new block is not of the selection.
  const absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint64_t>& handed_out() const {
    return handed_out_;
  }
  // How many blocks of a site were freed at a stack.
  const absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint64_t>& freed_at() const {
    return freed_at_;
  }
  uint64_t frees_with_stack() const { return frees_with_stack_; }
  // What the thread held at the ends of all intervals so far, of which there are intervals().
  HeldSeries TakeHeld(size_t thread) {
    return thread < held_.size() ? std::move(held_[thread]) : HeldSeries{};
  }
  uint32_t intervals() const { return interval_; }

  // Writes the state into an archive, or reads it out of one (state/state_archive.h).
  template <typename Archive>
  void Fold(Archive& archive);

 private:
  // Mostly one site's, many times in a row.
  SiteMoves& MovesOf(uint32_t site) {
    if (site != moving_site_) {
      moving_ = &moves_[site];
      moving_site_ = site;
    }
    return *moving_;
  }
  Exchange& ExchangeOf(const Threads& threads) {
    if (exchanges_.size() < kMostExchanges) return exchanges_[threads];
    const auto at = exchanges_.find(threads);
    return at != exchanges_.end() ? at->second : other_exchanges_;
  }

  absl::flat_hash_map<Threads, Exchange> exchanges_;
  Exchange other_exchanges_;
  absl::flat_hash_map<uint32_t, SiteMoves> moves_;  // by site
  uint32_t moving_site_ = 0;     // MovesOf() gave it last; 0: none
  SiteMoves* moving_ = nullptr;  // its entry
  absl::flat_hash_map<uint64_t, uint32_t> chains_;  // by address: KeepChain()
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint64_t> handed_over_, freed_at_;
  // In no archive: states are of all blocks.
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint64_t> handed_out_;
  uint64_t frees_with_stack_ = 0;
  std::vector<HeldSeries> held_;  // by thread
  uint32_t interval_ = 0;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_USAGE_USAGE_FOLD_H_
