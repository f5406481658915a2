// Limits: which processes are beyond what the policy allows them in all: bytes leaked, the peak,
// allocations, growth between phases, wrong frees. A limit of a program holds for it in place of
// the general one.
//
// Pure functions.

#ifndef MEMTRACE_REPORT_GATE_LIMITS_H_
#define MEMTRACE_REPORT_GATE_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/base/strong_id.h"
#include "report/gate/gate_input.h"
#include "report/gate/policy.h"
#include "report/gate/wrong_frees.h"

namespace memtrace::report::gate {

// A limit that was passed.
struct GateExcess {
  enum class What {
    kLeaked, kPeak, kAllocations, kGrowth, kInvalidFrees, kMismatchedFrees
  } what = What::kLeaked;
  static constexpr size_t kWhatCount = static_cast<size_t>(What::kMismatchedFrees) + 1;  // the last
  std::string program, file;  // of the process that is furthest beyond it
  uint32_t pid = 0;
  uint64_t limit = 0, value = 0;
  uint64_t processes = 0;     // how many are beyond it
  std::string phases;         // kGrowth: "warm..done"
  std::vector<WrongFree> frees;      // where, those that came most often first
  std::vector<StackId> stacks;       // of these, in that order
  std::string working_directory;     // of that process
};
absl::string_view ExcessName(GateExcess::What what);  // "leaked"
std::string ExcessText(const GateExcess& excess);     // a sentence

// Of each limit that was passed, in the order of the policy's. `leaked`: for --max-leaked, the
// bytes of each process. Limits that hold for none go to `missing`, a sentence each: their program
// did not run, or no process has their phases. So do those of which it is not known whether a
// process has their phases.
std::vector<GateExcess> FindExcesses(const GateInput& input, const GatePolicy& policy,
                                     const std::vector<uint64_t>& leaked, const WrongFrees& frees,
                                     std::vector<std::string>* missing);

// One of these limits holds for the process.
bool IsLimited(const std::vector<Limit>& limits, const GateProcess& process);

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_LIMITS_H_
