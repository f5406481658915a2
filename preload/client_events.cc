#include "preload/client_events.h"

#include <cstring>
#include <string_view>

#include "preload/extended_event.h"
#include "preload/faults/faults.h"
#include "preload/faults/page_snapshot.h"
#include "preload/recording_switch.h"
#include "preload/usage_samples.h"

namespace memtrace {
namespace {

using format::ExtendedType;

constexpr size_t kEventWords = kShortEventWords + kLongestClientName / 8;

std::string_view NameOf(const char* name) {
  if (name == nullptr) return {};
  return {name, strnlen(name, kLongestClientName)};
}

uint64_t AddressOf(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) & format::kAddressMask;
}

void BeginClientEvent(ThreadState& state, const void* block = nullptr) {
  state.events_to_stamp = 1;
  BeginEvent(state, reinterpret_cast<uintptr_t>(block), kEventWords);
}

// The end of a block that custom blocks are in is an event of an address of its own, whose thread
// may have no reason to take a stamp there: it has one when this returns, and so its event is
// behind this one, which has its stamp by then.
void BeginBlockEvent(ThreadState& state, const void* block = nullptr) {
  BeginClientEvent(state, block);
  BeginEpoch();
}

bool Sampling() { return g_process.config.sample_bytes != 0; }

}  // namespace

void RecordPoolCreate(const void* pool, const char* name, const CallSite& site) {
  if (pool == nullptr || Sampling()) return;
  const Section section(site.cfa);
  if (!section) return;
  const uint32_t slot = CaptureStack(section.state(), site);
  BeginClientEvent(section.state());
  PutExtended(section.state(), ExtendedType::kPoolCreate, {AddressOf(pool), slot}, NameOf(name));
}

void RecordPoolDestroy(const void* pool, const CallSite& site) {
  if (pool == nullptr || Sampling()) return;
  const Section section(site.cfa);
  if (!section) return;
  const uint32_t slot = CaptureStack(section.state(), site);
  BeginBlockEvent(section.state());
  PutExtended(section.state(), ExtendedType::kPoolDestroy, {AddressOf(pool), slot});
}

void RecordCustomAlloc(const void* pool, const void* block, size_t bytes, const CallSite& site) {
  if (block == nullptr || Sampling()) return;
  const Section section(site.cfa);
  if (!section) return;
  ThreadState& state = section.state();
  g_heap_territory.Note(reinterpret_cast<uintptr_t>(block), bytes);
  const uint32_t slot = Stopped() ? format::kStoppedSlot : CaptureStack(state, site);
  BeginBlockEvent(state, block);
  PutExtended(state, ExtendedType::kCustomAlloc, {AddressOf(block), bytes, AddressOf(pool), slot});
}

void RecordCustomFree(const void* pool, const void* block) {
  if (block == nullptr || Sampling()) return;
  const Section section;
  if (!section) return;
  BeginBlockEvent(section.state(), block);
  PutExtended(section.state(), ExtendedType::kCustomFree, {AddressOf(block), AddressOf(pool)});
}

void RecordIgnoredBlock(const void* block) {
  if (block == nullptr) return;
  const Section section;
  if (!section) return;
  BeginBlockEvent(section.state(), block);
  PutExtended(section.state(), ExtendedType::kIgnoreBlock, {AddressOf(block)});
}

void ChangeLeaksDisabled(int change) {
  uint32_t& depth = t_slot.leaks_disabled;
  if (change < 0 && depth == 0) return;
  depth += static_cast<uint32_t>(change);
  if (depth > 1 || (depth == 1 && change < 0)) return;  // nothing new
  const Section section;
  if (!section) return;
  BeginClientEvent(section.state());
  PutExtended(section.state(), ExtendedType::kLeaksDisabled, {depth});
}

void RecordPhase(format::PhaseEdge edge, const char* name, const CallSite& site) {
  const Section section(site.cfa);
  if (!section) return;
  const uint32_t slot = CaptureStack(section.state(), site);
  // The faults of a phase are known to the page.
  SampleUsageNow(section.state());
  BeginClientEvent(section.state());
  PutExtended(section.state(), ExtendedType::kPhase, {static_cast<uint64_t>(edge), slot},
              NameOf(name));
  DrainFaults(DrainWhen::kIfAny);
  if (edge == format::PhaseEdge::kMark) {
    TakePageSnapshot(format::SnapshotReason::kMark, NameOf(name));
    section.state().events_to_stamp = 1;
  }
}

namespace {

void Switch(uint32_t from, uint32_t to, const CallSite& site) {
  const Section section(site.cfa);
  if (!section) return;
  g_process.stopped_by_program.store(to == kRecordStopped, std::memory_order_relaxed);
  if (!g_switch.recording.compare_exchange_strong(from, to, std::memory_order_relaxed)) return;
  const uint32_t slot = CaptureStack(section.state(), site);
  BeginClientEvent(section.state());
  PutExtended(section.state(), ExtendedType::kRecordingStopped,
              {to == kRecordStopped ? uint64_t{1} : 0, slot});
}

}  // namespace

void StopByProgram(const CallSite& site) { Switch(kRecordAll, kRecordStopped, site); }
void StartByProgram(const CallSite& site) { Switch(kRecordStopped, kRecordAll, site); }

}  // namespace memtrace
