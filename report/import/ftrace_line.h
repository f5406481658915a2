// A line of an ftrace log, as /sys/kernel/tracing/trace and `trace-cmd report` print them:
//
//   bash-1234  (  1234) [001] d..1. 12345.678901: kmalloc: call_site=f+0x1a/0x50 ptr=... ...
//   bash-1234  [001]    12345.678901: kmalloc: (f+0x1a) call_site=ffffffff8120... ptr=0x... ...
//
// Pure functions; nothing in a line is trusted.

#ifndef MEMTRACE_REPORT_IMPORT_FTRACE_LINE_H_
#define MEMTRACE_REPORT_IMPORT_FTRACE_LINE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "format/event_words.h"

namespace memtrace::report::import {

struct FtraceLine {
  enum class Kind {
    kAlloc,
    kFree,
    kOtherEvent,  // of another kind: it says nothing of kmem
    kLost,        // the kernel's word that events are missing
    kWritten,     // "entries-in-buffer/entries-written"
    kNothing,     // blank, a comment, a heading
    kBad,         // none of these; `problem` says why
  };
  Kind kind = Kind::kBad;
  const char* problem = "";

  // These are set for events.
  absl::string_view comm;
  uint32_t tid = 0;
  uint64_t time_ns = 0;
  format::AllocFunction function = format::AllocFunction::kMalloc;  // kAlloc
  uint64_t address = 0;
  uint64_t requested_bytes = 0, allocated_bytes = 0;  // kAlloc
  // Where the call came from: an address, or a symbol as %pS prints it (then `call_site` is
  // the offset in it).
  uint64_t call_site = 0;
  absl::string_view symbol, symbol_module;
  // Where `call_site` is an address: the function that trace-cmd found there, "(do_work+0x1c)".
  absl::string_view caller;
  uint64_t caller_offset = 0;

  // kLost: how many, 0 not said; on which processor. kWritten: so many of the events that were
  // written are not in the log.
  uint64_t lost = 0;
  uint32_t cpu = 0;
};

// The views point into `line`, which has no line end.
FtraceLine ParseFtraceLine(absl::string_view line);

}  // namespace memtrace::report::import

#endif  // MEMTRACE_REPORT_IMPORT_FTRACE_LINE_H_
