// A site that does not grow: does it rise and fall back again and again, or stand far above its
// usual level once? docs/growth.md, "Bursts and sawteeth".
//
// Pure functions, any thread.

#ifndef MEMTRACE_REPORT_GROWTH_EXCURSIONS_H_
#define MEMTRACE_REPORT_GROWTH_EXCURSIONS_H_

#include "report/growth/site_history.h"

namespace memtrace::report {

// False: kBounded, whatever the history.
bool MayGoAndCome(const Site& site);

// kBounded, kBurst or kSawtooth.
Growth::Verdict ExcursionVerdict(const SiteHistory& history);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GROWTH_EXCURSIONS_H_
