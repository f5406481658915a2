// FaultDetails: whose page faults they were: what the fault events of a trace say, matched to
// the blocks, mappings and code of the process. Filled by the analyzer, read by the renderers.
//
// Every minor fault that getrusage counted is in exactly one of these sums. Of a part of a run
// `told` alone is known, and `before` where it begins with the process:
//
//   before        until the library looked: the program's start by kernel and loader
//   told          events; each is in one of `sites`, `mappings` and `places`
//   lost          events that the kernel or the library dropped, counted
//   not_told      the rest: taken by the kernel on the program's behalf where its own faults are
//                 not permitted to be seen (a read() into fresh memory, MAP_POPULATE), after the
//                 last look, or what was in the rings of a process that was killed

#ifndef MEMTRACE_REPORT_FINDINGS_FAULT_DETAILS_H_
#define MEMTRACE_REPORT_FINDINGS_FAULT_DETAILS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "format/event_words.h"
#include "format/faults.h"
#include "report/base/strong_id.h"

namespace memtrace::report {

struct FaultSums {
  uint64_t minor = 0, major = 0;

  uint64_t all() const { return minor + major; }
  void Add(bool is_major) { ++(is_major ? major : minor); }
  FaultSums& operator+=(const FaultSums& other) {
    minor += other.minor;
    major += other.major;
    return *this;
  }
};

// What the memory of a page is used for.
enum class MemoryKind : uint8_t {
  kBlock,        // a live block of malloc, or one that came to lie there next
  kProgramMap,   // the program's own mmap, shmat or brk
  kAllocator,    // the allocator's: free memory, its own bookkeeping
  kStack,        // of a thread
  kData,         // a module's writable data, from its file
  kBss,          //   and that which is no part of the file
  kText,         // code
  kReadOnly,     // a module's constants and tables
  kFile,         // another file
  kShared,       // shared memory of no program mapping that is known
  kTool,         // the library's, or touched by it
  kKernel,       // vdso and the like
  kUnknown,      // a mapping that no map in the trace has
};
inline constexpr size_t kMemoryKinds = 13;

struct FaultToucher {
  StackId code;      // a stack of one frame: the instruction; none: the kernel
  FaultSums faults;
};

// The faults on the blocks of an allocating site. The same stack may be in Analysis::sites.
struct FaultSite {
  StackId stack;
  format::AllocFunction function = format::AllocFunction::kMalloc;
  FaultSums faults;
  uint64_t by_allocator = 0;  // of these, before the block was given out: its first pages
  uint64_t blocks = 0;        // that had any
  uint64_t first_time_ns = 0, last_time_ns = 0;
  std::vector<FaultToucher> touchers;  // most first
};

struct FaultMapping {  // the program's own
  StackId stack;
  std::string file;
  FaultSums faults;
  std::vector<FaultToucher> touchers;
};

struct FaultPlace {
  MemoryKind kind = MemoryKind::kUnknown;
  std::string name;  // module, file, thread; may be empty
  FaultSums faults;
};

// How the faults of a run go with what happened to the heap before: the run in `bins` equal
// parts, Pearson's coefficient of what was added in each.
struct LaggedCorrelation {
  bool known = false;
  double now = 0;       // without a lag
  double best = 0;      // the highest, where the faults come `lag_ns` later
  uint64_t lag_ns = 0;  // 0: no lag is clearly better
};

struct FaultCorrelation {
  uint64_t bins = 0, bin_ns = 0;
  LaggedCorrelation live_minor, allocated_minor, live_major, allocated_major;
};

// Major faults on pages that had faulted before, while the heap did not grow: see thrash.h.
struct ThrashStretch {
  uint64_t begin_ns = 0, end_ns = 0;
  uint64_t refaults = 0;
  uint64_t live_bytes = 0;  // at its end
};

struct FaultDetails {
  bool known = false;          // the trace says how faults were looked for
  format::FaultSource source = format::FaultSource::kNone;
  std::string why;             // there are no events; empty: none were asked for
  uint64_t rings = 0, ring_bytes = 0;
  uint64_t ns_per_fault = 0;   // what a minor fault took at the start; 0: not measured

  FaultCorrelation correlation;
  uint64_t refaults = 0;       // major, of `told`
  std::vector<ThrashStretch> thrash;
  FaultSums counted;  // by getrusage, at the end or when the events were last looked at
  FaultSums before, told, not_told;
  uint64_t lost = 0;           // minor, as far as is known
  uint64_t last_lost_ns = 0;   // of the run, also where this is of a part: none was lost later
  FaultSums in_kernel;         // of `told`
  std::array<FaultSums, kMemoryKinds> by_kind{};  // of `told`
  std::vector<FaultSite> sites;        // most first; all of kBlock
  std::vector<FaultMapping> mappings;  // all of kProgramMap
  std::vector<FaultPlace> places;      // all others
  std::vector<FaultToucher> touchers;  // of `told`, whatever was touched
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_FAULT_DETAILS_H_
