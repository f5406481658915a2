// What each mapping of a process is for, from its name, its rights and its neighbours.

#ifndef MEMTRACE_REPORT_PAGES_REGIONS_H_
#define MEMTRACE_REPORT_PAGES_REGIONS_H_

#include <string>
#include <vector>

#include "report/pages/process_pages.h"

namespace memtrace::report::pages {

// `executable`: the path of the program's file. The kernel does not mark all: .bss is the
// unnamed mapping directly behind a unit's data, and the stack of a thread the one directly
// behind a small mapping without rights (its guard). What is neither is anonymous.
std::vector<MappedRegion> Classify(std::vector<Mapping> mappings, const std::string& executable);

}  // namespace memtrace::report::pages

#endif  // MEMTRACE_REPORT_PAGES_REGIONS_H_
