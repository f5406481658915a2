// TreeRows: the lines of a process tree, from the roots down, each with what is drawn
// before it. Of many children that look alike, the largest are shown and the others are
// one line.

#ifndef MEMTRACE_REPORT_TREE_TREE_ROWS_H_
#define MEMTRACE_REPORT_TREE_TREE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "report/tree/process_tree.h"

namespace memtrace::report {

// An image, or several that are not shown, with all below them.
struct TreeRow {
  size_t image = kNoImage;  // of several: the first
  uint64_t more = 0;        // 0: one image; else so many like it, not shown
  uint64_t more_images = 0;  // with those below them
  uint64_t allocations = 0, bytes = 0, live = 0, peak = 0;  // of all of them; the largest peak
  size_t depth = 0;         // 0: a root
  // For each of the first kDrawnDepth ancestors, outermost first: whether its line
  // goes on below this row.
  std::vector<bool> goes_on;
  bool last = false;        // of its siblings
  bool replaces = false;    // by an exec: the image above it at the same depth
};

inline constexpr size_t kDrawnDepth = 12;

struct TreeRows {
  std::vector<TreeRow> rows;
  uint64_t images_left_out = 0;  // beyond `most_rows`
};

// `alike`: of children alike so many are shown. SIZE_MAX: all.
TreeRows LayOutTree(const std::vector<ProcessImage>& images, const ProcessTree& tree,
                    size_t alike, size_t most_rows);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TREE_TREE_ROWS_H_
