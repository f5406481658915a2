// What `memtrace rings` prints of a branch of the tree.

#ifndef MEMTRACE_REPORT_RINGS_RINGS_FORMATS_H_
#define MEMTRACE_REPORT_RINGS_RINGS_FORMATS_H_

#include <string>
#include <vector>

#include "report/render/style.h"
#include "report/rings/source_tree.h"
#include "report/words/sink.h"

namespace memtrace::report::rings {

struct RingsOptions {
  Weight weight;
  size_t depth = 4;   // levels below the start
  size_t top = 10;    // children of a node; SIZE_MAX: all
  bool footprints = true;  // text, data and bss were looked for; else they are left out, or empty
  bool full = false;  // text: also what is below a node without any of the weight
  render::Style style;  // text
  std::vector<std::string> notes;  // what the tree lacks
  std::vector<std::string> only;   // sentences: what was chosen, and all amounts are of
};

std::string RenderRingsText(const SourceTree& tree, const Node& start, const std::string& title,
                            const RingsOptions& options);
// "memtrace-rings/1": nodes in nodes, the whole branch.
void RenderRingsJson(const SourceTree& tree, const Node& start, const std::string& trace,
                     const RingsOptions& options, words::Sink& out);
// A row for each node of the branch, with its path.
void RenderRingsCsv(const SourceTree& tree, const Node& start, const RingsOptions& options,
                    words::Sink& out);

}  // namespace memtrace::report::rings

#endif  // MEMTRACE_REPORT_RINGS_RINGS_FORMATS_H_
