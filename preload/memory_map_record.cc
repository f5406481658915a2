#include "preload/memory_map_record.h"

#include <atomic>

#include "preload/allowed_calls.h"
#include "preload/append_records.h"
#include "preload/clock.h"
#include "preload/descriptor_table.h"
#include "preload/own_memory.h"
#include "preload/own_proc.h"
#include "preload/pace.h"
#include "preload/process.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

constexpr size_t kSmallest = 128 << 10;  // a thousand mappings
constexpr size_t kLargest = 32 << 20;
constexpr long kFirstGrowthKb = 16 << 10;

constinit std::atomic<long> g_next_kb{kFirstGrowthKb};
constinit Pace g_look_pace;

}  // namespace

void WriteMemoryMap(format::MapReason reason) {
  const SignalsBlocked calls;
  if (!calls) return;
  const OwnFaultsScope faults;
  for (size_t capacity = kSmallest; capacity <= kLargest; capacity *= 4) {
    auto* text = static_cast<char*>(OwnMap(capacity, /*touch=*/false));
    if (text == nullptr) return;
    const uint64_t own = own_private_bytes();  // what is ours in the map that is read now
    const long bytes =
        ReadOwnProc("maps", [&](const char* path) { return ReadFile(path, text, capacity); });
    const bool whole = bytes > 0 && static_cast<size_t>(bytes) < capacity;
    if (whole) {
      const std::string_view map(text, static_cast<size_t>(bytes));
      AppendBigRecords(map.size() + 256, [&](format::RecordEncoder& out) {
        out.Begin(format::RecordTag::kMemoryMap);
        out.Number(static_cast<uint64_t>(reason));
        out.Number(g_clock.Now());
        out.Bytes(map);
        out.Number(own);
        out.End();
      }, reason == format::MapReason::kStart ? TraceFile::Keep::kForEver
                                             : TraceFile::Keep::kWhileNew);
    }
    OwnUnmap(text, capacity);
    if (bytes <= 0 || whole) return;
  }
}

void WriteMemoryMapIfGrown() {
  const OtherCalls calls;
  if (!calls || IsVforkChild()) return;  // its memory, not its usage
  const uint64_t asked = g_clock.Now();
  if (!g_look_pace.IsDue(asked)) return;
  rusage usage;
  if (sys::Failed(sys::Getrusage(RUSAGE_SELF, &usage))) return;
  g_look_pace.Took(asked, g_clock.Now(), kLongestPauseUs * g_clock.ticks_per_us());
  long due = g_next_kb.load(std::memory_order_relaxed);
  const long peak = OwnPeakKb(usage.ru_maxrss);
  if (peak < due ||
      !g_next_kb.compare_exchange_strong(due, peak * 2, std::memory_order_relaxed)) {
    return;
  }
  WriteMemoryMap(format::MapReason::kGrowth);
}

void ForgetMemoryMaps() { g_next_kb.store(kFirstGrowthKb, std::memory_order_relaxed); }

}  // namespace memtrace
