// libunwind's opinion of the stack of this thread, for the cross-check.
//
// It is opened privately, for it exports _Unwind_*, and only when asked for. It is
// used through its interface for other processes, with this process in the place of
// the other. Its interface for the own process takes the loader's lock and its own,
// one inside the other, in the middle of somebody's malloc; tests addresses with a
// pipe whose numbers a program may close and use again; and keeps rules over a dlclose.
//
//   what it is given         the registers of a function of ours; this process's memory,
//                            each page probed before it is read; the .eh_frame_hdr that
//                            _dl_find_object names for an address
//   what it does itself      everything else: it searches the table, reads CIE, FDE and
//                            expressions, knows signal frames and PLT stubs, and guesses
//                            by the frame pointer where there is nothing else
//
// Threads: OpenLibunwind() once, where the loader may be called. Then any thread at a
// time, with its signals blocked: libunwind takes locks of its own, for its memory.

#ifndef MEMTRACE_PRELOAD_LIBUNWIND_ORACLE_H_
#define MEMTRACE_PRELOAD_LIBUNWIND_ORACLE_H_

#include <cstddef>
#include <cstdint>

#include "format/records.h"
#include "preload/arch/arch.h"
#include "preload/unwind/stack_unwinder.h"

namespace memtrace {

struct OracleFrame {
  uintptr_t pc = 0;
  uintptr_t sp = 0;
  bool interrupted = false;  // by a signal: pc is exact
  bool trampoline = false;   // of a signal
  bool guessed = false;      // it, or a frame inside of it, was found without unwind information
};

struct OracleStack {
  OracleFrame* frames = nullptr;  // innermost first: the caller of the interposed function
  size_t capacity = 0;
  size_t count = 0;
  format::CrossCheckEnd end = format::CrossCheckEnd::kFirstFrame;
  int error = 0;  // libunwind's, with kGaveUp
};

// Pages that were found readable in one walk. None is remembered longer: it may be
// unmapped.
class ProbedPages {
 public:
  void Forget() { ++walk_; }
  bool Readable(uintptr_t address);

 private:
  static constexpr size_t kEntries = 256;
  uint64_t walk_ = 0;
  struct Entry {
    uintptr_t page;
    uint64_t walk;
  } entries_[kEntries] = {};
};

// Null, or why libunwind cannot be had.
const char* OpenLibunwind();

// Fills `stack`, whose `frames` and `capacity` are set, from a function of ours with
// these registers, inside the interposed function that `site` called.
void UnwindByLibunwind(const unwind::KeptRegisters& registers, const unwind::CallSite& site,
                       ProbedPages* pages, OracleStack* stack);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LIBUNWIND_ORACLE_H_
