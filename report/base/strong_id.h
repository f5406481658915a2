// StrongId: an index that cannot be mixed with another kind of index.
// After KDE heaptrack's src/util/indices.h; 0 means "none" for every kind.

#ifndef MEMTRACE_REPORT_BASE_STRONG_ID_H_
#define MEMTRACE_REPORT_BASE_STRONG_ID_H_

#include <compare>
#include <cstdint>
#include <utility>

namespace memtrace::report {

template <typename Tag>
struct StrongId {
  uint32_t value = 0;

  explicit operator bool() const { return value != 0; }
  friend auto operator<=>(StrongId, StrongId) = default;

  template <typename H>
  friend H AbslHashValue(H h, StrongId id) {
    return H::combine(std::move(h), id.value);
  }
};

using StackId = StrongId<struct StackTag>;    // a node of the StackTable: a whole stack
using ModuleId = StrongId<struct ModuleTag>;  // a module instance, as numbered in the trace
using ThreadId = StrongId<struct ThreadTag>;  // a thread serial, as numbered in the trace

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_STRONG_ID_H_
