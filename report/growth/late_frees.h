// LateFrees: of the blocks that were freed lately, those that had lived long:
// when they came and went.
//
// A program that ends by itself gives back what it has, and what it frees then says nothing of the
// run before. When that began is known at the end alone (shutdown.h), so that the frees of the last
// tenth are kept until then. Their number is bounded by that of the blocks that were live, and by
// kMost: beyond it half of them stand for two each, and so on. Which ones, a hash of their number
// says: programs free in patterns.
//
// Hot: IsLong() is on the path of each free. Single-threaded.

#ifndef MEMTRACE_REPORT_GROWTH_LATE_FREES_H_
#define MEMTRACE_REPORT_GROWTH_LATE_FREES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memtrace::report {

class LateFrees {
 public:
  struct Free {
    uint64_t born_ns = 0, freed_ns = 0, size = 0;
    uint32_t site = 0;
    uint32_t number = 0;  // of all that were added
  };
  static constexpr size_t kMost = 1 << 19;
  static constexpr size_t kFew = 1 << 15;  // 1 MiB; from there on there is room for all, 16 MiB

  // A block is one to keep if it lived for a thirty-second of the run so far.
  bool IsLong(uint64_t lifetime_ns) const { return lifetime_ns >= long_ns_; }
  void SetRun(uint64_t run_ns) {
    run_ns_ = run_ns;
    long_ns_ = run_ns / 32;
  }

  void Add(Free free) {
    free.number = ++number_;
    if (!IsChosen(free)) return;
    if (frees_.size() == kMost) {
      MakeRoom(free.freed_ns);
      if (!IsChosen(free)) return;
    }
    if (frees_.size() == kFew) frees_.reserve(kMost);  // and not by copies of ever larger ones
    frees_.push_back(free);
  }

  const std::vector<Free>& frees() const { return frees_; }
  uint64_t weight() const { return weight_; }  // so many stands each for

  // Writes the state into an archive, or reads it out of one (state/state_archive.h).
  template <typename Archive>
  void Fold(Archive& archive);

 private:
  void DropOld(uint64_t now_ns);
  void MakeRoom(uint64_t now_ns);

  uint64_t run_ns_ = 0, long_ns_ = UINT64_MAX;
  bool IsChosen(const Free& free) const {
    return (free.number * 0x9e3779b97f4a7c15u >> 32 & (weight_ - 1)) == 0;
  }

  uint32_t number_ = 0;
  uint64_t weight_ = 1;  // a power of two
  std::vector<Free> frees_;  // those of the last tenth, and maybe earlier ones
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GROWTH_LATE_FREES_H_
