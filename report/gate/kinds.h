// Sets of leak kinds, as options and suppressions name them.

#ifndef MEMTRACE_REPORT_GATE_KINDS_H_
#define MEMTRACE_REPORT_GATE_KINDS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/leaks.h"

namespace memtrace::report::gate {

class KindSet {
 public:
  constexpr KindSet() = default;
  static constexpr KindSet All() { return KindSet((1u << kLeakKinds) - 1); }
  static constexpr KindSet Of(LeakKind kind) { return KindSet(1u << static_cast<unsigned>(kind)); }

  constexpr bool Has(LeakKind kind) const { return (bits_ & Of(kind).bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr KindSet operator|(KindSet other) const { return KindSet(bits_ | other.bits_); }
  constexpr KindSet Without(LeakKind kind) const { return KindSet(bits_ & ~Of(kind).bits_); }
  friend constexpr bool operator==(KindSet, KindSet) = default;

 private:
  explicit constexpr KindSet(unsigned bits) : bits_(bits) {}
  unsigned bits_ = 0;
};

absl::string_view KindName(LeakKind kind);  // "definite"
// As memcheck says it: "definitely lost", "still reachable"; "not freed".
absl::string_view KindPhrase(LeakKind kind);
absl::StatusOr<LeakKind> ParseKind(absl::string_view name);
// Names separated by commas, or "all" or "none". As in Valgrind "all" is the four kinds that
// a scan finds.
absl::StatusOr<KindSet> ParseKinds(absl::string_view list);
std::string KindNames(KindSet kinds);  // "definite, possible"; "none"

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_KINDS_H_
