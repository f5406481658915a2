// LeakCheck: the scans of a trace, each at its instant, as what they found.
//
//   LeakCheck check(&reader, &stacks, options, range);
//   while events come, in order:
//     if (ticks of the event's span > check.next_ticks()) check.Take(model, ticks);
//   check.Take(model, UINT64_MAX); analysis.leak_scans = check.Finish()
//
// Take() reads the scan twice: for its regions and what heuristics need, and for its
// words. Memory: what the graph needs (heap_graph.h) and is given back afterwards.
//
// In the trace of a fork child it also reads the events up to the scan, for what was allocated
// (allocated_ranges.h): each once, however many scans there are.
//
// A scan that did not end, of which a part is missing, or of a sample, has no records.

#ifndef MEMTRACE_REPORT_LEAK_LEAK_CHECK_H_
#define MEMTRACE_REPORT_LEAK_LEAK_CHECK_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/findings/leaks.h"
#include "report/findings/range.h"
#include "report/leak/allocated_ranges.h"
#include "report/leak/heap_graph.h"
#include "report/leak/leak_options.h"
#include "report/leak/loss_records.h"
#include "report/leak/scan_reader.h"
#include "report/leak/unseen_code.h"
#include "report/trace/stack_table.h"

namespace memtrace::report {
class HeapModel;
class TraceReader;
}  // namespace memtrace::report

namespace memtrace::report::leak {

class LeakCheck {
 public:
  // All that is known while a scan is examined, for an observer that wants more than its records.
  // The observer may move it away.
  struct Result {
    Scan& scan;
    HeapGraph& graph;
    Marks& marks;
    std::vector<BlockSite>& sites;  // by HeldBlock::site
    const LeakScan& found;
  };
  using Observer = std::function<void(const Result&)>;

  // Scans outside of `range` are left out. `stop` as in AnalyzeOptions.
  LeakCheck(TraceReader* reader, const StackTable* stacks, const LeakOptions& options, Range range,
            Observer observer = {}, std::function<bool()> stop = {});

  // The instant of the next scan, modulo 2^60; UINT64_MAX: there is none.
  uint64_t next_ticks() const { return next_ticks_; }

  // Looks at all scans whose instant is before `ticks`: what `model` has is what was live.
  void Take(const HeapModel& model, uint64_t ticks);

  // The range ends here, if not before: what comes later has not been taken.
  void EndAt(uint64_t ns) { range_.to_ns = std::min(range_.to_ns, ns); }

  // Whether `stop` has said true while the events up to a scan were read: what was free at it is
  // not known then, as where more is unknown than the parent's blocks.
  bool stopped() const { return history_.has_value() && history_->stopped(); }

  std::vector<LeakScan> Finish() { return std::move(found_); }

 private:
  struct Waiting {
    uint32_t number;
    uint64_t ticks;
  };

  void TakeOne(const HeapModel& model, uint32_t number, bool after_last_event);
  void Classify(const HeapModel& model, Scan& scan, LeakScan* found);
  const AllocatedRanges* AllocatedBefore(const Scan& scan, const UnseenCode& unseen);
  void Explain(const Scan& scan, const UnseenCode& unseen, bool knows_allocated,
               LeakScan* found) const;
  std::string WhyCutShort(const Scan& scan) const;
  bool HasGLib() const;
  bool IsForkChild() const;
  std::string WhyBlocksAreUnknown(const UnseenCode& unseen) const;
  std::string WhyOwnBlocksAreUnknown(const UnseenCode& unseen) const;
  bool EventsWereLost() const;
  bool EventsAreDamaged(bool after_last_event) const;

  TraceReader* const reader_;
  const StackTable* const stacks_;
  const LeakOptions options_;
  Range range_;
  const Observer observer_;
  const std::function<bool()> stop_;
  LossRecords records_;
  std::vector<Waiting> waiting_;  // the next one last
  uint64_t next_ticks_ = UINT64_MAX;
  uint64_t blocks_looked_at_ = 0;
  std::optional<AllocationHistory> history_;  // once it was asked for
  std::vector<LeakScan> found_;
};

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_LEAK_CHECK_H_
