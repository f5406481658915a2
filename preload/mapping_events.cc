// The events of memory past malloc: mappings, the break that the program moves
// itself, shared segments.

#include <sys/mman.h>

#include <cstring>

#include "preload/allowed_calls.h"
#include "preload/extended_event.h"
#include "preload/leak_scan/program_mappings.h"
#include "preload/own_proc.h"
#include "preload/recorder.h"
#include "preload/scan_hints.h"
#include "preload/sys.h"
#include "preload/usage_samples.h"

namespace memtrace {
namespace {

// The first steps of every event of a mapping. Returns the slot of the stack.
uint32_t BeginMappingEvent(ThreadState& state, const CallSite& site) {
  const uint32_t slot = CaptureStack(state, site);
  SampleUsage(state, g_clock.Now(), kMappingSampleUs);
  state.events_to_stamp = 1;
  BeginEvent(state, 0, kLargestEventWords);
  return slot;
}

void ForgetMappings(uintptr_t begin, size_t bytes) {
  g_program_mappings.Forget(begin, bytes);
  g_program_edges.Forget(begin, bytes);
  g_allocator_mappings.Forget(begin, bytes);
}

void NoteMapping(uintptr_t begin, size_t bytes, int flags, const CallSite& site) {
  g_program_mappings.NoteMmap(begin, bytes, flags);
  if (g_process.allocator_is_glibc) return;
  if (site.pc - g_process.other_allocator.begin < g_process.other_allocator.bytes) {
    g_program_edges.Forget(begin, bytes);
    g_allocator_mappings.NoteMmap(begin, bytes, flags);
  } else {
    g_program_edges.NoteMmap(begin, bytes, flags);
    g_allocator_mappings.Forget(begin, bytes);
  }
}

}  // namespace

void RecordMmap(void* address, size_t length, int prot, int flags, int fd, uint64_t offset,
                const CallSite& site) {
  const Section section(site.cfa);
  if (!section) return;
  NoteMapping(reinterpret_cast<uintptr_t>(address), length, flags, site);
  ThreadState& state = section.state();
  const uint32_t slot = BeginMappingEvent(state, site);
  // The captured stack is in the ring by now: its buffer is free for the name,
  // and the program's stack may be small.
  char* const name = reinterpret_cast<char*>(state.keys);
  static_assert(sizeof(state.keys) >= 4096);
  long name_bytes = 0;
  const OtherCalls calls;
  if (calls && fd >= 0 && (flags & MAP_ANONYMOUS) == 0) {
    Text<16> file;
    file << "fd/" << fd;
    name_bytes =
        ReadOwnProc(file.view(), [&](const char* path) { return sys::Readlink(path, name, 4096); });
    if (name_bytes < 0) name_bytes = 0;
  }
  PutExtended(state, format::ExtendedType::kMmap,
              {reinterpret_cast<uintptr_t>(address), length,
               Pair(static_cast<uint32_t>(prot), static_cast<uint32_t>(flags)),
               Pair(static_cast<uint32_t>(fd), slot), offset},
              {name, static_cast<size_t>(name_bytes)});
}

bool RecordMunmap(void* address, size_t length, const CallSite& site) {
  ForgetMappings(reinterpret_cast<uintptr_t>(address), length);
  const Section section(site.cfa);
  if (!section) return false;
  ThreadState& state = section.state();
  const uint32_t slot = BeginMappingEvent(state, site);
  PutExtended(state, format::ExtendedType::kMunmap,
              {reinterpret_cast<uintptr_t>(address), length, slot});
  return true;
}

void RecordMunmapFailed(void* address, size_t length) {
  const Section section;
  if (!section) return;
  section.state().events_to_stamp = 1;
  BeginEvent(section.state(), 0);
  PutExtended(section.state(), format::ExtendedType::kMunmapFailed,
              {reinterpret_cast<uintptr_t>(address), length});
}

void RecordMremap(void* old_address, size_t old_length, bool told, void* address, size_t length,
                  int flags, const CallSite& site) {
  // What was told before the call is forgotten, and may be another thread's by now.
  if (!told) ForgetMappings(reinterpret_cast<uintptr_t>(old_address), old_length);
  ForgetMappings(reinterpret_cast<uintptr_t>(address), length);
  const Section section(site.cfa);
  if (!section) return;
  ThreadState& state = section.state();
  const uint32_t slot = BeginMappingEvent(state, site);
  PutExtended(state, format::ExtendedType::kMremap,
              {reinterpret_cast<uintptr_t>(old_address), old_length,
               reinterpret_cast<uintptr_t>(address), length,
               Pair(static_cast<uint32_t>(flags), slot), told ? 1u : 0u});
}

void RecordBreak(uintptr_t old_break, uintptr_t new_break, const CallSite& site) {
  g_scan_hints.MoveBreak(old_break, new_break);
  const Section section(site.cfa);
  if (!section) return;
  ThreadState& state = section.state();
  const uint32_t slot = BeginMappingEvent(state, site);
  // Growth by libc's allocator since the last event comes first.
  RecordHeapGrowth(state, old_break, slot);
  g_process.seen_break.store(new_break, std::memory_order_relaxed);
  PutExtended(state, format::ExtendedType::kBrk, {old_break, new_break, slot});
}

void RecordShmat(void* address, size_t length, int shmid, int flags, const CallSite& site) {
  const Section section(site.cfa);
  if (!section) return;
  ThreadState& state = section.state();
  const uint32_t slot = BeginMappingEvent(state, site);
  PutExtended(state, format::ExtendedType::kShmat,
              {reinterpret_cast<uintptr_t>(address), length,
               Pair(static_cast<uint32_t>(shmid), static_cast<uint32_t>(flags)), slot});
}

void RecordShmdt(const void* address, const CallSite& site) {
  const Section section(site.cfa);
  if (!section) return;
  ThreadState& state = section.state();
  const uint32_t slot = BeginMappingEvent(state, site);
  PutExtended(state, format::ExtendedType::kShmdt,
              {reinterpret_cast<uintptr_t>(address), slot});
}

}  // namespace memtrace
