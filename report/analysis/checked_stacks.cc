#include "report/analysis/checked_stacks.h"

#include <algorithm>

#include "report/model/module_finder.h"

namespace memtrace::report {
namespace {

// The library writes 16 of each result; a hostile trace has as many as fit.
constexpr size_t kMostStacks = 256;
}  // namespace

void FillCheckedStacks(const TraceReader& reader, Analysis* analysis) {
  const auto& records = reader.metadata().checked_stacks;
  if (records.empty()) return;
  const ModuleFinder modules(analysis->modules);
  for (size_t r = 0; r < std::min(records.size(), kMostStacks); ++r) {
    CheckedStack stack = records[r].stack;
    stack.time_ns = reader.clock().ToNs(records[r].ticks);
    for (size_t i = 0; i < stack.theirs.size(); ++i) {
      CheckedStack::Frame& frame = stack.theirs[i];
      const bool same = i < stack.ours.size() && stack.ours[i].pc == frame.pc;
      frame.instance = same ? stack.ours[i].instance : modules.InstanceAt(frame.pc, stack.time_ns);
    }
    analysis->checked_stacks.push_back(std::move(stack));
  }
}

}  // namespace memtrace::report
