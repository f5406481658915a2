// UnseenCode: the modules of a process that call an allocator past the library, so that blocks are
// in its heap that the trace does not have, or look live that were freed.
//
// By the scan, which looked where the calls of each module led
// (ScanHint::kAllocatesUnseen, kFreesUnseen); and by the library's note on what was
// opened with RTLD_DEEPBIND, which may be unloaded by then.

#ifndef MEMTRACE_REPORT_LEAK_UNSEEN_CODE_H_
#define MEMTRACE_REPORT_LEAK_UNSEEN_CODE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "report/leak/loss_records.h"
#include "report/leak/scan_reader.h"
#include "report/trace/stack_table.h"
#include "report/trace/trace_metadata.h"

namespace memtrace::report::leak {

class UnseenCode {
 public:
  UnseenCode(const Scan& scan, const TraceMetadata& metadata);

  // The files of those that do, for a sentence; empty: none is known.
  const std::string& who_allocates() const { return who_allocates_; }
  const std::string& who_frees() const { return who_frees_; }

  // For each site whether its stack passes through a module that frees unseen, which then may have
  // freed its blocks. Empty: there is no such module.
  std::vector<bool> MayHaveFreed(const std::vector<BlockSite>& sites,
                                 const StackTable& stacks) const;

 private:
  struct Code {
    uint64_t start = 0, end = 0;
    uint32_t instance = 0;  // of the module; 0: whatever lies there
  };

  std::vector<Code> frees_;
  std::string who_allocates_, who_frees_;
};

}  // namespace memtrace::report::leak

#endif  // MEMTRACE_REPORT_LEAK_UNSEEN_CODE_H_
