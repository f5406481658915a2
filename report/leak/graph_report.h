// GraphReport: answers from the heap graph of one scan.
//
//   what keeps the heap       by named root, and by site what would go with it
//   why are these blocks here which roots their chains begin at, what all of them hang on
//   who points there          every block and root with a word that points into a block
//
// Knows no names of functions; names of variables come from a VariableFinder. Computed when
// it is asked for. Memory: root_groups.h, retention.h and keep_paths.h, as far as needed.

#ifndef MEMTRACE_REPORT_LEAK_GRAPH_REPORT_H_
#define MEMTRACE_REPORT_LEAK_GRAPH_REPORT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "report/findings/leaks.h"
#include "report/leak/held_scan.h"
#include "report/leak/keep_paths.h"
#include "report/leak/retention.h"
#include "report/leak/root_groups.h"
#include "report/leak/site_retention.h"

namespace memtrace::report {
struct Analysis;
}

namespace memtrace::report::leak {

struct KeepingRoot {
  uint32_t group = 0;     // of RootGroups
  uint64_t words = 0;     // of it that point to blocks
  LeakAmount retained;    // what would go with it alone
};

struct KeptSite {
  RetainingSite site;
  // The root at which the chains of most of its bytes begin; kNone: they are lost.
  uint32_t group = KeepPaths::kNone;
  uint64_t bytes_of_group = 0;
};

struct HeapSummary {
  uint64_t blocks = 0, pointers = 0, root_words = 0;
  std::vector<KeepingRoot> roots;  // largest first
  std::vector<KeptSite> sites;     // largest first
  LeakAmount shared;  // reachable, and retained by no named root alone
  LeakAmount lost;
};

struct WhyAnswer {
  std::vector<uint32_t> blocks;
  std::array<LeakAmount, kLeakKinds> kinds;  // by LeakKind
  LeakAmount retained;  // what would go with all of the blocks
  // The nodes of the RetentionGraph that all of the blocks hang on, the nearest first.
  std::vector<uint32_t> held_by;
  // Where the chains to the blocks begin: at a named root or, with group kNone, at a lost block.
  struct Keeper {
    uint32_t group = KeepPaths::kNone;
    LeakKind kind = LeakKind::kReachable;  // of the blocks
    LeakAmount kept;
    uint32_t example = 0;  // a block of a shortest chain
  };
  std::vector<Keeper> keepers;  // most bytes first
};

struct PointersAnswer {
  uint32_t block = kNoBlock;  // that the address is in
  uint64_t address = 0;
  struct FromBlock {
    uint32_t block = 0;
    uint64_t offset = 0;
    Pointer how = Pointer::kStart;
  };
  std::vector<FromBlock> blocks;  // by address
  std::vector<uint32_t> roots;    // indices in HeapGraph::roots()
};

class GraphReport {
 public:
  // The arguments must outlive it, but for `find`.
  GraphReport(const Analysis& analysis, const HeldScan& held, const VariableFinder& find);

  const HeldScan& held() const { return held_; }
  const HeapGraph& graph() const { return held_.graph; }
  const RootGroups& roots() const { return roots_; }
  const BlockSite& SiteOf(uint32_t block) const {
    return held_.sites[held_.graph.blocks().block(block).site];
  }
  LeakKind KindOf(uint32_t block) const { return held_.marks.kind[block]; }

  HeapSummary Summarize();
  WhyAnswer Why(std::vector<uint32_t> blocks);
  // No block: nothing is in `block` of the answer.
  PointersAnswer WhoPointsAt(uint64_t address) const;

  const KeepPaths& paths();
  const RetentionGraph& nodes();
  const Retention& retention();

 private:
  const HeldScan& held_;
  RootGroups roots_;
  std::optional<KeepPaths> paths_;
  std::optional<RetentionGraph> nodes_;
  std::optional<Retention> retention_;
};

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_GRAPH_REPORT_H_
