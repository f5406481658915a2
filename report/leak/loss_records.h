// Loss records: the blocks of a scan by kind and allocating stack, as memcheck numbers them;
// and how each differs from the scan before.
//
// Memory: one entry for each stack and kind that ever had a block.

#ifndef MEMTRACE_REPORT_LEAK_LOSS_RECORDS_H_
#define MEMTRACE_REPORT_LEAK_LOSS_RECORDS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "report/findings/leaks.h"
#include "report/leak/leak_options.h"
#include "report/leak/marker.h"
#include "report/trace/stack_table.h"

namespace memtrace::report::leak {

// Who allocated a block.
struct BlockSite {
  StackId stack;
  format::AllocFunction function = format::AllocFunction::kMalloc;
};

// Equal for sites that are one.
std::vector<uint64_t> StackKey(const StackTable& stacks, const BlockSite& site,
                               const Resolution& resolution);

class LossRecords {
 public:
  LossRecords(const StackTable* stacks, const Resolution& resolution)
      : stacks_(stacks), resolution_(resolution) {}

  // Fills totals, ignored, by_heuristic and records of `scan`. `sites` by HeldBlock::site. Blocks
  // with kUncounted are not counted.
  void Fill(const HeapGraph& graph, const Marks& marks, const std::vector<BlockSite>& sites,
            LeakScan* scan);

 private:
  struct Group {  // stacks that are one at this resolution
    StackId stack;  // of the first
    format::AllocFunction function;
  };
  struct Amounts {
    LeakAmount direct, indirect;
  };
  uint32_t GroupOf(const BlockSite& site);

  const StackTable* const stacks_;
  const Resolution resolution_;
  std::vector<Group> groups_;
  absl::flat_hash_map<std::pair<uint32_t, format::AllocFunction>, uint32_t> by_stack_;
  absl::flat_hash_map<std::vector<uint64_t>, uint32_t> by_frames_;
  absl::flat_hash_map<uint64_t, Amounts> before_;  // by group << 3 | kind: of the scan before
};

// Whether it is what the scan was asked for: a text shows no other records.
bool IsShown(const LossRecord& record, format::ScanShow show);

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_LOSS_RECORDS_H_
