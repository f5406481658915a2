// Does the least that a site holds rise until the end? The evidence of whatever grows, also of
// what replaces its blocks by larger ones. docs/growth.md, "A floor that rises" and "Containers".
//
// Pure functions, any thread.

#ifndef MEMTRACE_REPORT_GROWTH_RISING_FLOOR_H_
#define MEMTRACE_REPORT_GROWTH_RISING_FLOOR_H_

#include "report/growth/site_history.h"

namespace memtrace::report {

// False: there is neither evidence, whatever the history.
bool MayRise(const Site& site);

GrowthEvidence FloorEvidence(const SiteHistory& history);
// The evidence of a few large steps, each level a multiple of the one before: vectors and
// hash tables that double.
GrowthEvidence StepEvidence(const SiteHistory& history);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_GROWTH_RISING_FLOOR_H_
