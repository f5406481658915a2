// Grouping: the sites of a report in their order, and which of them read alike.
//
// Two sites whose stacks have the same names are one leak to a reader, and sites with the same
// caller are one row of a table. To find that out takes a walk over the frames of every stack; a
// report of the same trace with the same names can have it from the one before
// (report/index/grouping_store.h).

#ifndef MEMTRACE_REPORT_RENDER_GROUPING_H_
#define MEMTRACE_REPORT_RENDER_GROUPING_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "report/findings/analysis.h"
#include "report/names/site_symbols.h"

namespace memtrace::report::render {

struct Grouping {
  struct Row {
    uint32_t site = 0;    // index in Analysis::sites
    uint32_t leak = 0;    // 0: nothing of it is live; else 1 + the number of its group among those
                          // with the same stack and function, of which that with most live is 0
    uint32_t caller = 0;  // the number of its group among those with the same caller, of which that
                          // with most allocated is 0
    friend bool operator==(const Row&, const Row&) = default;
  };
  std::vector<Row> rows;  // most bytes allocated first
  uint32_t leaks = 0, callers = 0;  // groups

  // It is one of these sites, all of them: what was read from a file need not be.
  bool IsOf(const Analysis& analysis) const;
};

// A copy of what groups are sorted by, which are large; stack and function are those of the site
// that has most. More of `figure` comes first; a tie has the same order every time.
struct GroupKey {
  uint64_t figure = 0, bytes_allocated = 0, allocations = 0;
  StackId stack;
  format::AllocFunction function = format::AllocFunction::kMalloc;
  uint32_t number = 0;
};
bool ComesFirst(const GroupKey& a, const GroupKey& b);

// Groups the sites whose stack `matches`; empty: all sites.
Grouping GroupSites(const Analysis& analysis, const SiteSymbols& symbols,
                    const std::function<bool(StackId)>& matches = {});

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_GROUPING_H_
