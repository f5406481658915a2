// Growth scenarios: what sites do with memory, each written by somebody who knows what it is. A
// world is a run in which many of them go on at the same time; its trace is what the analyzer
// reads, and the labels are what it has to find.
//
// Random, but the same for the same seed. The rules were made with other seeds than those that
// docs/growth.md publishes figures of.

#ifndef MEMTRACE_TESTS_REPORT_GROWTH_GROWTH_SCENARIOS_H_
#define MEMTRACE_TESTS_REPORT_GROWTH_GROWTH_SCENARIOS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "report/findings/growth.h"

namespace memtrace::report {

struct LabelledSite {
  std::string scenario;
  Growth::Verdict verdict;
  bool held = false;  // until exit, whatever the verdict
};

struct World {
  std::string trace;                 // bytes of the file
  std::vector<LabelledSite> sites;   // by number; the stack of each is one frame
};

inline uint64_t PcOfScenario(size_t site) { return 0x500000 + 64 * site; }

// `variants` of each kind. With `shutdown`, what is held is freed in the last fiftieth of the run;
// without one the program is killed, and there are no scenarios that need an exit.
World MakeWorld(uint64_t seed, int variants, bool shutdown);

}  // namespace memtrace::report

#endif  // MEMTRACE_TESTS_REPORT_GROWTH_GROWTH_SCENARIOS_H_
