// A mapping in one line: a character for each page, or for as many pages as it takes to
// fit; then the state that most of the pages have that are there at all.
//
//   .  not resident            w  swapped out              z  the kernel's page of zeros
//   a  anonymous, mapped once: the process's own, or its copy of a page of a file
//   f  of a file or shared memory, mapped once
//   2..9  mapped so often      +  ten times or more        s  mapped more than once, not known how often
//   H  part of a huge page

#ifndef MEMTRACE_REPORT_PAGES_PAGE_LINE_H_
#define MEMTRACE_REPORT_PAGES_PAGE_LINE_H_

#include <cstdint>
#include <string>

#include "report/pages/process_pages.h"

namespace memtrace::report::pages {

char PageCharacter(const Page& page);

struct PageLine {
  std::string characters;
  uint64_t pages_each = 1;
};
PageLine DrawPages(const MappedRegion& region, uint64_t page_bytes, size_t width);

// Pages by state; each is counted once.
struct PageStates {
  uint64_t own = 0;       // anonymous, mapped once
  uint64_t file_own = 0;  // of a file, mapped once
  uint64_t shared = 0;    // mapped more than once
  uint64_t swapped = 0, zero = 0;
  uint64_t huge = 0;      // of those above
};
PageStates CountStates(const MappedRegion& region);

inline constexpr char kPageLegend[] =
    ". not resident, a anonymous mapped once, f file mapped once, 2-9 + mapped so often, "
    "s shared, w swapped out, H huge, z zeros";

}  // namespace memtrace::report::pages

#endif  // MEMTRACE_REPORT_PAGES_PAGE_LINE_H_
