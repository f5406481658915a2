// LeakKindSet: kinds of leaks, as options, suppressions and baselines name them; and the names.

#ifndef MEMTRACE_REPORT_LEAK_LEAK_KINDS_H_
#define MEMTRACE_REPORT_LEAK_LEAK_KINDS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/findings/leaks.h"

namespace memtrace::report {

// What a scan finds, in memcheck's order.
inline constexpr LeakKind kScanKinds[] = {LeakKind::kDefinite, LeakKind::kIndirect,
                                          LeakKind::kPossible, LeakKind::kReachable};

class LeakKindSet {
 public:
  constexpr LeakKindSet() = default;
  static constexpr LeakKindSet Of(LeakKind kind) {
    return LeakKindSet(1u << static_cast<unsigned>(kind));
  }
  static constexpr LeakKindSet All() { return LeakKindSet((1u << kLeakKinds) - 1); }
  static constexpr LeakKindSet OfScans() { return All().Without(LeakKind::kUnfreed); }
  // What memcheck shows, and counts as errors, unless it is told otherwise.
  static constexpr LeakKindSet Default() {
    return Of(LeakKind::kDefinite).With(LeakKind::kPossible);
  }

  constexpr bool Has(LeakKind kind) const { return (bits_ & Of(kind).bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr LeakKindSet With(LeakKind kind) const { return LeakKindSet(bits_ | Of(kind).bits_); }
  constexpr LeakKindSet Without(LeakKind kind) const {
    return LeakKindSet(bits_ & ~Of(kind).bits_);
  }
  friend constexpr bool operator==(LeakKindSet, LeakKindSet) = default;

 private:
  explicit constexpr LeakKindSet(unsigned bits) : bits_(bits) {}
  unsigned bits_ = 0;
};

absl::string_view KindName(LeakKind kind);  // "definite"
// The kind in memcheck's words: "definitely lost", "still reachable"; "not freed".
absl::string_view KindPhrase(LeakKind kind);
std::string KindNames(LeakKindSet kinds);  // "definite, possible"; "none"

// The kind with this name, which must be one of `known`.
absl::StatusOr<LeakKind> ParseKind(absl::string_view name, LeakKindSet known = LeakKindSet::All());
// Names separated by commas, or "all" or "none". As in Valgrind "all" is the four kinds that
// a scan finds.
absl::StatusOr<LeakKindSet> ParseKinds(absl::string_view list,
                                       LeakKindSet known = LeakKindSet::All());

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_LEAK_LEAK_KINDS_H_
