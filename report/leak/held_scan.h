// HeldScan: a memory scan with all that was worked out of it, kept for questions that are
// asked when the analysis is over: what keeps a block alive, what would go with it.
//
// Memory: that of the graph (heap_graph.h) and 25 bytes a block.

#ifndef MEMTRACE_REPORT_LEAK_HELD_SCAN_H_
#define MEMTRACE_REPORT_LEAK_HELD_SCAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "report/leak/leak_check.h"

namespace memtrace::report::leak {

struct HeldScan {
  Scan scan;
  HeapGraph graph;
  Marks marks;
  std::vector<BlockSite> sites;  // by HeldBlock::site
  uint64_t time_ns = 0;
};

// Takes the scan that ChooseScan() will choose for `number`; `held` must outlive the analysis.
LeakCheck::Observer HoldScan(uint32_t number, std::optional<HeldScan>* held);

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_HELD_SCAN_H_
