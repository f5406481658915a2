#include "report/growth/late_frees.h"

namespace memtrace::report {

void LateFrees::DropOld(uint64_t now_ns) {
  std::erase_if(frees_, [&](const Free& free) { return free.freed_ns + run_ns_ / 10 < now_ns; });
}

void LateFrees::MakeRoom(uint64_t now_ns) {
  DropOld(now_ns);
  if (frees_.size() <= kMost / 2) return;
  for (size_t i = 0; i < frees_.size() / 2; ++i) frees_[i] = frees_[2 * i + 1];
  frees_.resize(frees_.size() / 2);
  weight_ *= 2;
}

}  // namespace memtrace::report
