#include "preload/segments.h"

#include <time.h>

#include "preload/clock.h"
#include "preload/rounding.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

// The shares of the file: a sixteenth for metadata, a quarter for rings; but not less than a
// program with two threads needs.
constexpr uint64_t kMetadataShare = 16, kRingShare = 4;
constexpr uint64_t kLeastMetadata = 64 << 10;
constexpr uint64_t kLeastRings = 3;

// How often a thread lets others go first before its block is given up; after the first few
// times it sleeps, for the scheduler may hold back the one that is waited for.
constexpr int kYields = 32, kNaps = 100;
constexpr long kNapNs = 1'000'000;

void LetOthersGoFirst(int times) {
  const timespec nap = {0, kNapNs};
  if (times <= kYields) {
    sys::Call(SYS_sched_yield);
  } else {
    sys::Call(SYS_nanosleep, reinterpret_cast<long>(&nap), 0);
  }
}

}  // namespace

void Segments::Init(uint64_t max_bytes, uint64_t ring_bytes, format::StatusArea* status,
                    uint64_t ticks) {
  const uint64_t metadata = max_bytes / kMetadataShare;
  const uint64_t rings = max_bytes / kRingShare;
  metadata_end_ =
      Down(metadata > kLeastMetadata ? metadata : kLeastMetadata, format::kRingAlignment);
  const uint64_t least = kLeastRings * ring_bytes;
  segments_begin_ = metadata_end_ + Down(rings > least ? rings : least, ring_bytes);
  segment_bytes_ = Down((Down(max_bytes, format::kRingAlignment) - segments_begin_) / kCount,
                        format::kRingAlignment);
  for (std::atomic<uint32_t>& writers : writers_) writers.store(0, std::memory_order_relaxed);
  // Segment 0 counts as begun: n is 4, 8, ... for it.
  position_.store(uint64_t{kCount} << 40, std::memory_order_seq_cst);
  status->segments_begin = segments_begin_;
  status->segment_bytes = segment_bytes_;
  status->segments = kCount;
  status->segments_begun = status->segment_beginning = kCount;
  for (uint32_t i = 0; i < kCount; ++i) status->segment_ticks[i] = ticks;
}

bool Segments::Reserve(uint64_t bytes, TraceStatus& status, Place* place) {
  if (bytes > segment_bytes_) return false;
  for (int waits = 0;;) {
    uint64_t position = position_.load(std::memory_order_acquire);
    const uint64_t begun = position >> 40, used = position & kUsedMask;
    if (used + bytes > segment_bytes_) {
      if (!Begin(position, status)) {
        // Most likely it was preempted in the middle, and we run in its place.
        if (++waits > kYields + kNaps) return false;
        LetOthersGoFirst(waits);
        continue;
      }
      if (position_.load(std::memory_order_relaxed) >> 40 == begun) continue;
      place->began = true;
      continue;
    }
    const auto index = static_cast<uint32_t>(begun % kCount);
    writers_[index].fetch_add(1, std::memory_order_seq_cst);
    if (position_.compare_exchange_strong(position, position + bytes, std::memory_order_seq_cst)) {
      place->offset = segments_begin_ + index * segment_bytes_ + used;
      place->index = index;
      return true;
    }
    writers_[index].fetch_sub(1, std::memory_order_release);
  }
}

// Begins the next segment, unless somebody else did. False: it is still being written.
bool Segments::Begin(uint64_t position, TraceStatus& status) {
  const uint64_t wanted = (position >> 40) + 1;
  const auto index = static_cast<uint32_t>(wanted % kCount);
  if (writers_[index].load(std::memory_order_seq_cst) != 0) {
    // The writer may also be a thread that came too late for a place in it, and is about to notice.
    return position_.load(std::memory_order_acquire) != position;
  }
  TraceStatus::Raise(status.area().segment_beginning, wanted);
  const uint64_t ticks = g_clock.OrderedNow();
  if (!position_.compare_exchange_strong(position, wanted << 40, std::memory_order_seq_cst)) {
    return true;
  }
  // Never back, should another thread have begun the four that follow by now.
  TraceStatus::Raise(status.area().segment_ticks[index], ticks);
  TraceStatus::Raise(status.area().segments_begun, wanted);
  return true;
}

}  // namespace memtrace
