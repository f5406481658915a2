// ResidentMemory: from the bytes of the heap to the resident bytes of the process, at the
// moments of which the trace has a snapshot of the pages.
//
// Bytes of resident pages, each in exactly one part of RssBridge::parts; their sum is `rss`.

#ifndef MEMTRACE_REPORT_FINDINGS_RSS_BRIDGE_H_
#define MEMTRACE_REPORT_FINDINGS_RSS_BRIDGE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "format/event_words.h"
#include "format/faults.h"
#include "report/base/strong_id.h"

namespace memtrace::report {

enum class RssPart : uint8_t {
  kLive,          // requested bytes of live blocks
  kWaste,         // usable minus requested, and headers, of live blocks
  kRetained,      // free memory of the allocator: resident, and in no live block
  kProgramMap,    // the program's own anonymous mappings
  kMappedFiles,   // files that are no modules
  kShared,        // shared memory
  kStacks,
  kCode,          // of modules
  kData,          // of modules: .data, .bss, constants
  kTool,          // the library's
  kOther,         // in no part above
};
inline constexpr size_t kRssParts = 11;

// The resident memory of a site's blocks.
struct ResidentSite {
  StackId stack;
  format::AllocFunction function = format::AllocFunction::kMalloc;
  uint64_t live_bytes = 0;       // requested
  uint64_t blocks = 0;
  uint64_t resident_bytes = 0;   // of requested and waste
  uint64_t untouched_bytes = 0;  // live bytes on pages that are not resident
  uint64_t swapped_bytes = 0;
  uint64_t pinned_bytes = 0;     // free bytes of resident pages that its blocks keep
  uint64_t pinning_blocks = 0;
  uint64_t enclosed_bytes = 0;   // free pages below its block, which is the last of a heap
};

struct RssBridge {
  uint32_t number = 0;
  format::SnapshotReason reason = format::SnapshotReason::kEnd;
  format::PageSource source = format::PageSource::kNone;
  std::string name;          // of a mark
  uint64_t time_ns = 0;
  uint64_t rss = 0;          // the sum of Rss of all mappings
  uint64_t rollup_rss = 0;   // what smaps_rollup said a moment before; 0: nothing
  uint64_t peak_rss = 0;     // VmHWM then
  std::array<uint64_t, kRssParts> parts{};
  // Beside the sum.
  uint64_t live_bytes = 0;       // of the heap, resident or not
  uint64_t untouched_bytes = 0;  // live bytes on pages that are not resident
  uint64_t swap = 0, huge = 0, page_tables = 0;
  uint64_t zero_or_shared = 0;   // of rss: anonymous pages that are not this process's alone
  uint64_t pages_left_out = 0;
  uint64_t pinned_bytes = 0;     // of waste and retained: free, on pages with live bytes
  uint64_t enclosed_bytes = 0;   // of retained: whole pages below the last block of a heap
  std::vector<ResidentSite> sites;  // most resident first
};

struct ResidentMemory {
  std::vector<RssBridge> bridges;  // in the order of time

  const RssBridge* End() const {
    for (auto at = bridges.rbegin(); at != bridges.rend(); ++at) {
      if (at->reason == format::SnapshotReason::kEnd) return &*at;
    }
    return nullptr;
  }
  // The one with the most resident bytes.
  const RssBridge* Peak() const {
    const RssBridge* peak = nullptr;
    for (const RssBridge& bridge : bridges) {
      if (peak == nullptr || bridge.rss > peak->rss) peak = &bridge;
    }
    return peak;
  }
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_FINDINGS_RSS_BRIDGE_H_
