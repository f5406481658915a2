#include "report/model/order_doubts.h"

#include <algorithm>

namespace memtrace::report {

std::optional<OrderDoubts::Debt> OrderDoubts::TakeDebt(uint64_t address) {
  const auto at = debts_.find(address);
  if (at == debts_.end()) return std::nullopt;
  const Debt debt = at->second;
  debts_.erase(at);
  return debt;
}

void OrderDoubts::Keep(uint64_t address, uint64_t time, TimeOfAddress* times) {
  constexpr size_t kMost = 1 << 16;
  if (times->size() >= kMost) {
    absl::erase_if(*times, [&](const auto& each) { return each.second + kReorderNs < time; });
    if (times->size() >= kMost) return;
  }
  (*times)[address] = time;
}

bool OrderDoubts::Take(uint64_t address, uint64_t time, TimeOfAddress* times) {
  const auto at = times->find(address);
  if (at == times->end()) return false;
  const bool near = std::max(at->second, time) - std::min(at->second, time) <= kReorderNs;
  times->erase(at);
  return near;
}

}  // namespace memtrace::report
