// ClientEvents: what the program tells by memtrace.h, as events.
//
// On the event path, in every sense: no lock, no allocation, from any thread in any state.
// Each event has a time word of its own, so that its order to those of other threads is that of
// the calls; the one that is about a block claims the block's address as an allocation does
// (block_owners.h), and begins an epoch, for the block may lie in another one
// (docs/event-order.md).
//
// In a process that samples, custom blocks are not recorded.

#ifndef MEMTRACE_PRELOAD_CLIENT_EVENTS_H_
#define MEMTRACE_PRELOAD_CLIENT_EVENTS_H_

#include <cstddef>

#include "format/event_words.h"
#include "preload/recorder.h"

namespace memtrace {

// The most bytes that a name has in the trace: longer ones are cut.
inline constexpr size_t kLongestClientName = 120;

// `name` may be null.
void RecordPoolCreate(const void* pool, const char* name, const CallSite& site);
void RecordPoolDestroy(const void* pool, const CallSite& site);
// `pool` null: the block is of no pool.
void RecordCustomAlloc(const void* pool, const void* block, size_t bytes, const CallSite& site);
void RecordCustomFree(const void* pool, const void* block);

void RecordIgnoredBlock(const void* block);
// The calling thread begins (`change` 1) or ends (-1) a memtrace_disable().
void ChangeLeaksDisabled(int change);

void RecordPhase(format::PhaseEdge edge, const char* name, const CallSite& site);

// Both are without effect when it is so already.
void StopByProgram(const CallSite& site);
void StartByProgram(const CallSite& site);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_CLIENT_EVENTS_H_
