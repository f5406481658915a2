// BlockFilter: which blocks a report is about, besides the time and the thread of their allocation.
//
// What is known when a block is allocated (its size, its site) is asked then. How long it lives is
// known later: a LifetimeWatch goes through the trace first and keeps a bit for each allocation,
// by its number in the order of events, which the second pass asks. So every figure of the report,
// also those of an instant, is of the chosen blocks.
//
// Single-threaded.

#ifndef MEMTRACE_REPORT_USAGE_BLOCK_FILTER_H_
#define MEMTRACE_REPORT_USAGE_BLOCK_FILTER_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "report/base/strong_id.h"
#include "report/findings/usage.h"

namespace memtrace::report {

// One bit for each allocation: an eighth of a byte each, the only thing in the reporter that grows
// with the events. 62 MB for a trace of a billion.
class ChosenBlocks {
 public:
  bool Get(uint64_t number) const {
    return number / 64 < bits_.size() && (bits_[number / 64] >> number % 64 & 1) != 0;
  }
  void Set(uint64_t number) {
    if (number / 64 >= bits_.size()) bits_.resize(number / 64 + 1);
    bits_[number / 64] |= uint64_t{1} << number % 64;
  }

 private:
  std::vector<uint64_t> bits_;
};

// The first pass: told of every block's begin and end.
class LifetimeWatch {
 public:
  // `lifetimes`: from the allocation to the free. A block that is not freed lived at least until
  // the end, so it is chosen by a lower bound below that, and by no upper one. `ages`: at
  // the end, of blocks that are live then; when it is not all of them, no other is chosen.
  LifetimeWatch(ValueRange lifetimes, ValueRange ages) : lifetimes_(lifetimes), ages_(ages) {}

  // Custom blocks may lie at the addresses of others.
  void Placed(uint64_t address, bool custom, uint64_t time_ns) {
    live_[KeyOf(address, custom, time_ns)] = count_++;
  }
  void Ended(uint64_t address, bool custom, uint64_t placed_ns, uint64_t time_ns);
  // Takes the blocks that are still live into account.
  void Finish(uint64_t end_ns);

  const ChosenBlocks& chosen() const { return chosen_; }

 private:
  using Key = std::pair<uint64_t, uint64_t>;
  static Key KeyOf(uint64_t address, bool custom, uint64_t time_ns) {
    return {address | uint64_t{custom} << 63, time_ns};
  }

  const ValueRange lifetimes_, ages_;
  absl::flat_hash_map<Key, uint64_t> live_;
  uint64_t count_ = 0;
  ChosenBlocks chosen_;
};

struct BlockFilter {
  ValueRange sizes, lifetimes, ages;
  // Sites whose stack it likes; empty: all. Asked once for each site.
  std::function<bool(StackId)> sites;

  BlockSelection selection() const { return {sizes, lifetimes, ages, static_cast<bool>(sites)}; }
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_USAGE_BLOCK_FILTER_H_
