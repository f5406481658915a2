#include "report/checked_stacks.h"

#include <algorithm>

namespace memtrace::report {
namespace {

// The library writes 16 of each result; a hostile trace has as many as fit.
constexpr size_t kMostStacks = 256;
// Modules that were at one place one after the other, for one address.
constexpr size_t kMostInstances = 1024;

class InstanceFinder {
 public:
  explicit InstanceFinder(const std::vector<ModuleInfo>& modules) {
    for (const ModuleInfo& module : modules) by_start_.push_back(&module);
    std::stable_sort(by_start_.begin(), by_start_.end(),
                     [](const ModuleInfo* a, const ModuleInfo* b) { return a->start < b->start; });
  }

  // Of the module around `pc` then; kPermanentInstance where none is known.
  uint32_t At(uint64_t pc, uint64_t time_ns) const {
    auto at = std::lower_bound(
        by_start_.begin(), by_start_.end(), pc,
        [](const ModuleInfo* module, uint64_t address) { return module->start < address; });
    for (size_t i = 0; i < kMostInstances && at != by_start_.begin(); ++i) {
      const ModuleInfo& module = **--at;
      // A return address may be the end of the last function of the module.
      if (pc > module.end) continue;
      if (module.flags & format::kModulePermanent) return format::kPermanentInstance;
      if (module.unload_time_ns == 0 || module.unload_time_ns >= time_ns) return module.id.value;
    }
    return format::kPermanentInstance;
  }

 private:
  std::vector<const ModuleInfo*> by_start_;
};

}  // namespace

void FillCheckedStacks(const TraceReader& reader, Analysis* analysis) {
  const auto& records = reader.metadata().checked_stacks;
  if (records.empty()) return;
  const InstanceFinder instances(analysis->modules);
  for (size_t r = 0; r < std::min(records.size(), kMostStacks); ++r) {
    CheckedStack stack = records[r].stack;
    stack.time_ns = reader.clock().ToNs(records[r].ticks);
    for (size_t i = 0; i < stack.theirs.size(); ++i) {
      CheckedStack::Frame& frame = stack.theirs[i];
      const bool same = i < stack.ours.size() && stack.ours[i].pc == frame.pc;
      frame.instance = same ? stack.ours[i].instance : instances.At(frame.pc, stack.time_ns);
    }
    analysis->checked_stacks.push_back(std::move(stack));
  }
}

}  // namespace memtrace::report
