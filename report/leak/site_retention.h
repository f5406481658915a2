// SiteRetention: what would go with all blocks of a site.
//
// What the blocks of a site retain one by one is known from their dominators. Where more than
// one of them leads to blocks of other sites, they may share something that none of them
// retains alone: then the answer is found by following all ways that pass no block of the
// site, 64 sites at a time (a bit each), those first that retain most one by one, as long as
// the work stays below kMostSteps. Of the rest `exact` is false: they retain at least so much.
//
// Memory: 20 bytes a node, and the sites.

#ifndef MEMTRACE_REPORT_LEAK_SITE_RETENTION_H_
#define MEMTRACE_REPORT_LEAK_SITE_RETENTION_H_

#include <cstdint>
#include <vector>

#include "report/leak/loss_records.h"
#include "report/leak/retention.h"

namespace memtrace::report::leak {

struct RetainingSite {
  BlockSite site;
  LeakAmount own;       // of its blocks
  LeakAmount retained;  // with its own
  bool exact = true;    // false: at least so much
};

inline constexpr uint64_t kMostSteps = uint64_t{1} << 30;

// Largest first. `sites` by HeldBlock::site.
std::vector<RetainingSite> FindRetainingSites(const RetentionGraph& graph,
                                              const Retention& retention,
                                              const std::vector<BlockSite>& sites,
                                              uint64_t most_steps = kMostSteps);

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_SITE_RETENTION_H_
