// Which losses hang on memory that the program mapped itself: a pool or a collector's pages.
// What of these is still there at the end may depend on the order of their addresses, and so
// differ under Valgrind, which gives out others.
//
// Pure; one thread. Time and memory: those of the chains of all blocks (report/leak/keep_paths.h).

#ifndef MEMTRACE_REPORT_VALGRIND_KEPT_BY_MAPPINGS_H_
#define MEMTRACE_REPORT_VALGRIND_KEPT_BY_MAPPINGS_H_

#include "report/findings/analysis.h"
#include "report/leak/held_scan.h"
#include "report/render/valgrind_losses.h"

namespace memtrace::report::valgrind {

// Sets Loss::kept_by_mapping. `held` is the scan that the losses are of; of another nothing is set.
void MarkKeptByMappings(const Analysis& analysis, const leak::HeldScan& held,
                        render::LossList* losses);

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_KEPT_BY_MAPPINGS_H_
