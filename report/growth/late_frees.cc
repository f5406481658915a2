#include "report/growth/late_frees.h"

namespace memtrace::report {

void LateFrees::DropOld(uint64_t now_ns) {
  std::erase_if(frees_, [&](const Free& free) { return free.freed_ns + run_ns_ / 10 < now_ns; });
}

void LateFrees::MakeRoom(uint64_t now_ns) {
  DropOld(now_ns);
  while (frees_.size() > kMost * 3 / 4) {
    weight_ *= 2;
    std::erase_if(frees_, [&](const Free& free) { return !IsChosen(free); });
  }
}

}  // namespace memtrace::report
