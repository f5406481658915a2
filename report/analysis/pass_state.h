// The state of an analysis in the middle of its pass over a trace, for those who keep such states
// and give one back later, so that a question about an instant is answered from the next state
// before it (index/indexed_analysis.h).
//
// A state is one of the whole trace, of all threads and blocks. It serves
//   - a range that begins where the whole does and ends behind it, of all blocks: as it is;
//   - any range that begins behind it: then nothing so far is of the selection, and what the state
//     has of figures is dropped; only what is live remains, and who held what.
//
// It is exact: the analysis that takes one up is the same, in every member, as the one that
// began at the beginning.

#ifndef MEMTRACE_REPORT_ANALYSIS_PASS_STATE_H_
#define MEMTRACE_REPORT_ANALYSIS_PASS_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace memtrace::report {

// Where a pass is.
struct PassPoint {
  uint64_t latest_ns = 0;     // no event so far is later
  uint64_t latest_ticks = 0;  // nor its span begins later
  uint64_t content_bytes = 0;  // of events that were decoded
  uint64_t events = 0;
  uint64_t live_blocks = 0;
  uint64_t sites = 0;
};

// Stacks and sites only become more. They are kept in pieces, each with what is new since the one
// before; a state needs all up to its own.
struct PassState {
  std::vector<std::string> pieces;
  std::string state;
};

class PassKeeper {
 public:
  virtual ~PassKeeper() = default;
  virtual int every_events() const { return 8192; }
  // Asked about so often.
  virtual bool Wants(const PassPoint& point) = 0;
  virtual void Keep(const PassPoint& point, std::string piece, std::string state) = 0;
};

class PassSource {
 public:
  virtual ~PassSource() = default;
  // The latest state whose events are all before `before_ns` and its spans not behind `ticks`.
  // False: there is none.
  virtual bool Find(uint64_t before_ns, uint64_t ticks, PassState* state) = 0;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_ANALYSIS_PASS_STATE_H_
