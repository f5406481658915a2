// OrderDoubts: what a HeapModel keeps of events whose order is not known, until a later one tells
// it. heap_model.h has the rules; what is counted, and when, is the model's affair.
//
//   debts            frees of addresses at which no block was, one of each address
//   doubtful frees   those that ended a block and may have been meant for a later one at its
//                    address; the latest ones only
//   written off      debts that nobody could pay
//   unseen           the ends of blocks whose free did not come
//
// One of each of the last two at one address, at about the same time, are partners: there was a
// block and its free, and the order between them and others is not the one that was found.
//
// Single-threaded. Inline is what events are asked for that are not in doubt.

#ifndef MEMTRACE_REPORT_MODEL_ORDER_DOUBTS_H_
#define MEMTRACE_REPORT_MODEL_ORDER_DOUBTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace memtrace::report {

// No thread lags so far behind the others: what is this much older was earlier.
inline constexpr uint64_t kReorderNs = 100'000'000;

class OrderDoubts {
 public:
  // A free of a block that was not there.
  struct Debt {
    size_t stream;
    uint64_t time;
    uint64_t high;  // not later than this
  };

  bool has_debts() const { return !debts_.empty(); }
  // The stream freed this address, and what it freed is still to come.
  bool Owes(size_t stream, uint64_t address) const {
    const auto debt = debts_.find(address);
    return debt != debts_.end() && debt->second.stream == stream;
  }
  // `debt` was not before `low`. If the free that ended the block there shortly before is another
  // thread's, and may have been later, it was that free which was taken too early: the debt is its.
  // Calls `write_off` for each that nobody can pay any more.
  template <typename WriteOff>
  void AddDebt(uint64_t address, Debt debt, uint64_t low, WriteOff write_off);
  // The debt at the address, which is none from now on.
  std::optional<Debt> TakeDebt(uint64_t address);
  void ForgetDebt(size_t stream, uint64_t address) {
    if (Owes(stream, address)) debts_.erase(address);
  }
  template <typename WriteOff>
  void WriteOffAllDebts(WriteOff write_off) {
    for (const auto& [address, debt] : debts_) write_off(address, debt);
    debts_.clear();
  }

  // A free may have been meant for a later block: by another thread than the block's, or at a time
  // that is not well known. `debt`: what it would have been.
  void RememberFree(uint64_t address, const Debt& debt) {
    if (doubtful_frees_.empty()) doubtful_frees_.resize(kDoubtfulFrees);
    doubtful_frees_[DoubtIndex(address)] = {address, debt};
  }
  // The same, if there was such a free before.
  void RememberAlso(uint64_t address, const Debt& debt) {
    if (!doubtful_frees_.empty()) RememberFree(address, debt);
  }

  // Keep one for a partner that comes later.
  void KeepWrittenOff(uint64_t address, uint64_t time) { Keep(address, time, &written_off_); }
  void KeepUnseen(uint64_t address, uint64_t time) { Keep(address, time, &unseen_); }
  // Whether there is a partner, which is taken.
  bool TakeWrittenOff(uint64_t address, uint64_t time) {
    return Take(address, time, &written_off_);
  }
  bool TakeUnseen(uint64_t address, uint64_t time) { return Take(address, time, &unseen_); }
  void ForgetPartners() {
    written_off_.clear();
    unseen_.clear();
  }

  // As HeapModel's. There are `streams`.
  template <typename Archive>
  void Fold(Archive& archive, size_t streams);

 private:
  using TimeOfAddress = absl::flat_hash_map<uint64_t, uint64_t>;

  struct DoubtfulFree {
    uint64_t address;
    Debt debt;
  };
  static constexpr size_t kDoubtfulFrees = 1 << 14;
  static size_t DoubtIndex(uint64_t address) { return (address >> 4) * 0x9e3779b97f4a7c15 >> 50; }
  static_assert(kDoubtfulFrees == size_t{1} << (64 - 50));

  static void Keep(uint64_t address, uint64_t time, TimeOfAddress* times);
  static bool Take(uint64_t address, uint64_t time, TimeOfAddress* times);

  absl::flat_hash_map<uint64_t, Debt> debts_;  // by address
  size_t look_through_debts_at_ = 4096;
  TimeOfAddress written_off_, unseen_;
  std::vector<DoubtfulFree> doubtful_frees_;  // by DoubtIndex(), the latest
};

template <typename WriteOff>
void OrderDoubts::AddDebt(uint64_t address, Debt debt, uint64_t low, WriteOff write_off) {
  if (!doubtful_frees_.empty()) {
    DoubtfulFree& last = doubtful_frees_[DoubtIndex(address)];
    const bool may_be_later = last.debt.high >= low && last.debt.stream != debt.stream;
    if (last.address == address && may_be_later) {
      debt = last.debt;
      last = {};
    }
  }
  const auto [at, added] = debts_.try_emplace(address, debt);
  if (!added) {
    write_off(address, at->second);
    at->second = debt;
  }
  if (debts_.size() < look_through_debts_at_) return;
  // In a fork child there may be as many as the parent had blocks.
  absl::erase_if(debts_, [&](const auto& each) {
    const uint64_t last = std::max(each.second.time, each.second.high);
    if (last == UINT64_MAX || last + kReorderNs >= low) return false;
    write_off(each.first, each.second);
    return true;
  });
  look_through_debts_at_ = std::max<size_t>(4096, debts_.size() * 2);
}

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_MODEL_ORDER_DOUBTS_H_
