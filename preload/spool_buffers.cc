#include "preload/spool_buffers.h"

#include <atomic>

#include "preload/own_memory.h"
#include "preload/thread_state.h"

namespace memtrace {
namespace {

struct Place {
  std::atomic<const void*> borrower{nullptr};
  SpoolBuffer* buffer = nullptr;  // the borrower's to make
};

// More spool at the same instant only where there are more processors.
constinit Place g_places[8];

}  // namespace

BorrowedSpoolBuffer::BorrowedSpoolBuffer() {
  for (int i = 0; Place& place : g_places) {
    const void* nobody = nullptr;
    if (place.borrower.compare_exchange_strong(nobody, &t_slot, std::memory_order_acq_rel)) {
      if (place.buffer == nullptr) {
        place.buffer = static_cast<SpoolBuffer*>(OwnMap(sizeof(SpoolBuffer), /*touch=*/true));
      }
      buffer_ = place.buffer;
      place_ = i;
      return;
    }
    ++i;
  }
}

BorrowedSpoolBuffer::~BorrowedSpoolBuffer() {
  if (place_ >= 0) g_places[place_].borrower.store(nullptr, std::memory_order_release);
}

void ReturnSpoolBuffersOfOtherThreads() {
  for (Place& place : g_places) {
    // This thread goes on with the buffer that it holds when the handler that forked returns.
    if (place.borrower.load(std::memory_order_relaxed) == &t_slot) continue;
    place.borrower.store(nullptr, std::memory_order_relaxed);
  }
}

}  // namespace memtrace
