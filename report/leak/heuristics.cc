#include "report/leak/heuristics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace memtrace::report::leak {
namespace {

constexpr std::pair<Pointer, absl::string_view> kHeuristicNames[] = {
    {Pointer::kStdString, "stdstring"},
    {Pointer::kLength64, "length64"},
    {Pointer::kNewArray, "newarray"},
    {Pointer::kMultipleInheritance, "multipleinheritance"},
    {Pointer::kGObject, "gobject"},
    {Pointer::kGSlice, "gslice"},
};

}  // namespace

absl::string_view HeuristicName(Pointer heuristic) {
  for (const auto& [known, name] : kHeuristicNames) {
    if (known == heuristic) return name;
  }
  return "";
}

absl::StatusOr<HeuristicSet> ParseHeuristics(absl::string_view list) {
  if (list == "all") return kAllHeuristics;
  if (list == "none" || list.empty()) return HeuristicSet{0};
  HeuristicSet set = 0;
  for (const absl::string_view word : absl::StrSplit(list, ',')) {
    HeuristicSet bit = 0;
    for (const auto& [heuristic, name] : kHeuristicNames) {
      if (name == word) bit = 1u << static_cast<int>(heuristic);
    }
    if (bit == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--leak-check-heuristics: \"", word, "\" is none of stdstring, length64, ",
                       "newarray, multipleinheritance, gobject, gslice, all, none"));
    }
    set |= bit;
  }
  return set;
}

void Heuristics::Sort() {
  std::sort(targets_.begin(), targets_.end(),
            [](const Target& a, const Target& b) { return a.address < b.address; });
  std::sort(vtables_.begin(), vtables_.end());
}

Pointer Heuristics::Of(uint64_t value, uint64_t start, uint64_t size) const {
  constexpr uint64_t kWord = 8;
  constexpr uint64_t kClosureAt = 4 * kWord, kClosureBytes = 4 * kWord;
  const uint64_t offset = value - start;
  if (offset == kWord || offset == 3 * kWord) {
    const auto at = std::lower_bound(
        targets_.begin(), targets_.end(), value,
        [](const Target& target, uint64_t address) { return target.address < address; });
    if (at != targets_.end() && at->address == value) {
      if (offset == 3 * kWord && Uses(Pointer::kStdString) && at->has_more &&
          at->at_minus_16 < size && 3 * kWord + at->at_minus_16 + 1 == size &&
          at->at_minus_24 <= at->at_minus_16) {
        return Pointer::kStdString;
      }
      if (offset == kWord && at->at_minus_8 != 0) {
        if (Uses(Pointer::kLength64) && size - kWord == at->at_minus_8) return Pointer::kLength64;
        if (Uses(Pointer::kNewArray) && (size - kWord) % at->at_minus_8 == 0) {
          return Pointer::kNewArray;
        }
      }
    }
  }
  if (Uses(Pointer::kMultipleInheritance) && value % kWord == 0 && IsVtable(value) &&
      IsVtable(start)) {
    return Pointer::kMultipleInheritance;
  }
  if (has_closures_ && Uses(Pointer::kGObject) && offset == kClosureAt &&
      (size == kClosureAt + kClosureBytes || size == kClosureAt + kClosureBytes + kWord)) {
    return Pointer::kGObject;
  }
  return Pointer::kInterior;
}

}  // namespace memtrace::report::leak
