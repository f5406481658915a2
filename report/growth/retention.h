// Does a site keep blocks at the end of the run as it did before? The evidence of leaks that are
// few among many blocks that go. docs/growth.md, "Blocks that stay".
//
// Pure functions, any thread.

#ifndef MEMTRACE_REPORT_GROWTH_RETENTION_H_
#define MEMTRACE_REPORT_GROWTH_RETENTION_H_

#include "report/growth/site_history.h"

namespace memtrace::report {

// False: there is none, whatever the history. Most sites of large programs have a few blocks, and
// this costs a compare; so with the others' below.
bool MayRetain(const Site& site);

GrowthEvidence RetentionEvidence(const SiteHistory& history);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GROWTH_RETENTION_H_
