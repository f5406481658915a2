#include "preload/interrupted_fork.h"

#include <sys/mman.h>

#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"
#include "preload/thread_state.h"

namespace memtrace {

void ForkedInside() {
  const SignalsBlocked no_handler;
  // The states of handlers that were interrupted themselves are half-way through an event too.
  // Without a state the thread was on its way in, and finds out itself that it is in a fork child.
  for (ThreadState* state = t_slot.state; state != nullptr; state = state->for_handlers) {
    if (state->abandoned) continue;
    AbandonThread(*state);
    if (!state->ring.attached() || state->ring_is_private) continue;
    sys::Mmap(state->ring.mapping(), state->ring.bytes(), PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
    CountRingBytes(-static_cast<int64_t>(state->ring.bytes()));
    CountOwnBytes(static_cast<int64_t>(state->ring.bytes()));
  }
  g_process.file.Forsake();
  t_slot.mode = ThreadMode::kNew;
}

}  // namespace memtrace
