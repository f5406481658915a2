#include "preload/client_api.h"

#include <cstddef>
#include <cstdint>

#define MEMTRACE_DISABLE  // the library does not ask itself
#include "include/memtrace.h"
#include "preload/call_site.h"
#include "preload/client_events.h"
#include "preload/exported.h"
#include "preload/leak_scan/leak_scan.h"
#include "preload/recording_switch.h"
#include "preload/scan_hints.h"

namespace memtrace {
namespace {

// Each is called by the program: its frame is the caller of these.

ENTERED int IsActive() {
  const Section section;
  return section && !Stopped() ? 1 : 0;
}

ENTERED long LeakCheck(const char* label, unsigned show, int wait) {
  if (show > static_cast<unsigned>(format::ScanShow::kChanged)) return MEMTRACE_INVALID;
  // The recording of a fork child begins with its first call.
  if (g_switch.recording.load(std::memory_order_relaxed) == 0) const Section begins;
  if (g_switch.recording.load(std::memory_order_relaxed) == 0) return MEMTRACE_NOT_ACTIVE;
  const ScanResult result =
      RequestScan(format::ScanReason::kRequest, label != nullptr ? label : "",
                  static_cast<format::ScanShow>(show), wait != 0,
                  {MEMTRACE_KEPT_REGISTERS_ON_STACK()});
  return result.state != ScanResult::kFailed ? long{result.number} : MEMTRACE_NOT_AVAILABLE;
}

ENTERED void IgnoreObject(const void* object) { RecordIgnoredBlock(object); }
ENTERED void Disable() { ChangeLeaksDisabled(1); }
ENTERED void Enable() { ChangeLeaksDisabled(-1); }

ENTERED int RootRegion(const void* begin, size_t size) {
  const auto from = reinterpret_cast<uintptr_t>(begin);
  uintptr_t to;
  if (from == 0 || size == 0 || __builtin_add_overflow(from, size, &to)) return MEMTRACE_INVALID;
  return g_scan_hints.AddRoot(from, to) ? 0 : MEMTRACE_FULL;
}
ENTERED int UnrootRegion(const void* begin, size_t size) {
  const auto from = reinterpret_cast<uintptr_t>(begin);
  return g_scan_hints.RemoveRoot(from, from + size) ? 0 : MEMTRACE_INVALID;
}

ENTERED void PoolCreate(const void* pool, const char* name, unsigned) {
  RecordPoolCreate(pool, name, CALL_SITE());
}
ENTERED void PoolDestroy(const void* pool) { RecordPoolDestroy(pool, CALL_SITE()); }
ENTERED void PoolAlloc(const void* pool, const void* block, size_t size) {
  RecordCustomAlloc(pool, block, size, CALL_SITE());
}
ENTERED void PoolFree(const void* pool, const void* block) { RecordCustomFree(pool, block); }
ENTERED void BlockAlloc(const void* block, size_t size) {
  RecordCustomAlloc(nullptr, block, size, CALL_SITE());
}
ENTERED void BlockFree(const void* block) { RecordCustomFree(nullptr, block); }

ENTERED void PhaseBegin(const char* name) {
  RecordPhase(format::PhaseEdge::kBegin, name, CALL_SITE());
}
ENTERED void PhaseEnd(const char* name) { RecordPhase(format::PhaseEdge::kEnd, name, CALL_SITE()); }
ENTERED void Mark(const char* name) { RecordPhase(format::PhaseEdge::kMark, name, CALL_SITE()); }

ENTERED void Start() { StartByProgram(CALL_SITE()); }
ENTERED void Stop() { StopByProgram(CALL_SITE()); }

constexpr memtrace_functions kFunctions = {
    sizeof(memtrace_functions),
    IsActive,  LeakCheck,   IgnoreObject, Disable,  Enable,     RootRegion,
    UnrootRegion, PoolCreate, PoolDestroy, PoolAlloc, PoolFree, BlockAlloc,
    BlockFree, PhaseBegin,  PhaseEnd,     Mark,     Start,      Stop,
};

}  // namespace

bool AnswerClient(unsigned long thread, const char* text) {
  if (thread != 0 || text == nullptr) return false;
  constexpr char kQuestion[] = MEMTRACE_REQUEST_;
  for (size_t i = 0; i < sizeof(kQuestion); ++i) {
    if (text[i] != kQuestion[i]) return false;
  }
  // The text of a memtrace_request_, which is not constant.
  const_cast<memtrace_request_*>(reinterpret_cast<const memtrace_request_*>(text))->functions =
      &kFunctions;
  return true;
}

}  // namespace memtrace
