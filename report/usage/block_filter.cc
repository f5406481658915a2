#include "report/usage/block_filter.h"

#include <algorithm>

namespace memtrace::report {

void LifetimeWatch::Ended(uint64_t address, bool custom, uint64_t placed_ns, uint64_t time_ns) {
  const auto at = live_.find(KeyOf(address, custom, placed_ns));
  if (at == live_.end()) return;
  if (ages_.all() && lifetimes_.Contains(time_ns - std::min(placed_ns, time_ns))) {
    chosen_.Set(at->second);
  }
  live_.erase(at);
}

void LifetimeWatch::Finish(uint64_t end_ns) {
  for (const auto& [key, number] : live_) {
    const uint64_t age = end_ns - std::min(key.second, end_ns);
    const bool lived = lifetimes_.high == UINT64_MAX && age >= lifetimes_.low;
    if (lived && ages_.Contains(age)) chosen_.Set(number);
  }
  live_.clear();
}

}  // namespace memtrace::report
