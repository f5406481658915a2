// Heuristics: interior pointers that are as good as a pointer to the start, because of what
// stands in front of the place they point to. memcheck's four, by memcheck's tests, and two of GLib
// (glib_blocks.h).
//
//   stdstring            p - b == 24  length, capacity and reference count of an old std::string
//   length64             p - b == 8   the size of the rest, as sqlite's allocator writes it
//   newarray             p - b == 8   the number of elements, of new T[n] with a destructor
//   multipleinheritance  any          p and b both hold the address of a vtable: a second base
//
// The facts come from the scan: format/memory_scan.h, kTargets and kVtables.

#ifndef MEMTRACE_REPORT_LEAK_HEURISTICS_H_
#define MEMTRACE_REPORT_LEAK_HEURISTICS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace memtrace::report::leak {

// How a word points to a block. The order is that of LeakScan::by_heuristic.
enum class Pointer : uint8_t {
  kStart = 0,
  kStdString = 1,
  kLength64 = 2,
  kNewArray = 3,
  kMultipleInheritance = 4,
  kGObject = 5,
  kGSlice = 6,
  kInterior = 7,  // and no heuristic takes it for a start
};
inline constexpr size_t kHeuristics = 6;

// Bit 1 << Pointer of those that are to be used.
using HeuristicSet = uint32_t;
inline constexpr HeuristicSet kAllHeuristics = 0x7e;

absl::string_view HeuristicName(Pointer heuristic);  // "stdstring"
// "all", "none", or names separated by commas.
absl::StatusOr<HeuristicSet> ParseHeuristics(absl::string_view list);

// Heap memory in front of an address.
struct Target {
  uint64_t address = 0;
  uint64_t at_minus_8 = 0;
  bool has_more = false;
  uint64_t at_minus_24 = 0, at_minus_16 = 0;
};

class Heuristics {
 public:
  explicit Heuristics(HeuristicSet set = kAllHeuristics) : set_(set) {}

  void Add(const Target& target) { targets_.push_back(target); }
  void AddVtable(uint64_t address) { vtables_.push_back(address); }
  // The program has GLib: closures are known by their place (glib_blocks.h).
  void AddClosures() { has_closures_ = true; }
  void Sort();  // after the last

  // `value` points behind the start of the block and into it.
  Pointer Of(uint64_t value, uint64_t start, uint64_t size) const;

 private:
  bool Uses(Pointer heuristic) const { return (set_ >> static_cast<int>(heuristic) & 1) != 0; }
  bool IsVtable(uint64_t address) const {
    return std::binary_search(vtables_.begin(), vtables_.end(), address);
  }

  HeuristicSet set_;
  bool has_closures_ = false;
  std::vector<Target> targets_;    // by address
  std::vector<uint64_t> vtables_;  // sorted
};

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_HEURISTICS_H_
