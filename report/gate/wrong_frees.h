// WrongFrees: of each process the invalid and the mismatched frees that nobody
// suppresses, and where they were. These are certain also of a process that was killed,
// of whose leaks nothing is known.

#ifndef MEMTRACE_REPORT_GATE_WRONG_FREES_H_
#define MEMTRACE_REPORT_GATE_WRONG_FREES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "report/gate/gate_input.h"
#include "report/render/view.h"
#include "report/suppress/suppressions.h"

namespace memtrace::report::gate {

// Blocks of one stack that ended wrongly at another.
struct WrongFree {
  std::string allocator, called;  // "operator new", "operator delete(void*)"
  StackId from, to;               // of the allocation and the free, as far as they are known
  uint64_t times = 0;
};

class WrongFrees {
 public:
  struct Kind {
    uint64_t times = 0;
    std::vector<WrongFree> places;  // those that came most often first, no more than are read
    // Of these: the stack of each free, then that of the allocation, as far as there are such.
    std::vector<StackId> stacks;
  };
  struct OfProcess {
    Kind invalid, mismatched;
  };

  // `names` has the stacks of input.ends. Matches are counted in `suppressions`.
  WrongFrees(const GateInput& input, const render::ReportView& names,
             suppress::Suppressions* suppressions);

  const OfProcess& of(size_t process) const { return processes_[process]; }

 private:
  std::vector<OfProcess> processes_;
};

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_WRONG_FREES_H_
