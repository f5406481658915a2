#include "preload/trace_status.h"

#include <sys/mman.h>

#include "preload/own_memory.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

constexpr size_t kPage = 4096;
static_assert(TraceStatus::kEnd <= kPage);

}  // namespace

format::StatusArea TraceStatus::NewArea() {
  format::StatusArea area = {};
  area.magic = format::kStatusMagic;
  area.bytes = sizeof(area);
  return area;
}

void TraceStatus::Attach(long fd, const format::StatusArea& initial) {
  area_.store(&private_area_, std::memory_order_release);
  private_area_ = initial;
  if (mapping_ != nullptr) {
    sys::Munmap(mapping_, kPage);
    CountRingBytes(-static_cast<int64_t>(kPage));
  }
  void* const mapping = sys::Mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  mapping_ = sys::MmapFailed(mapping) ? nullptr : mapping;
  if (mapping_ == nullptr) return;
  CountRingBytes(static_cast<int64_t>(kPage));
  area_.store(reinterpret_cast<format::StatusArea*>(static_cast<char*>(mapping_) + kOffset),
              std::memory_order_release);
}

void TraceStatus::NoteLoss(uint64_t events, uint64_t ticks, format::RecordingStop why,
                           long error) {
  format::StatusArea& to = area();
  std::atomic_ref(to.loss_why).store(static_cast<uint32_t>(why), std::memory_order_relaxed);
  std::atomic_ref(to.loss_errno).store(static_cast<int32_t>(error), std::memory_order_relaxed);
  uint64_t never = 0;
  std::atomic_ref(to.first_loss_ticks).compare_exchange_strong(never, ticks);
  Raise(to.last_loss_ticks, ticks);
  std::atomic_ref(to.lost_events).fetch_add(events, std::memory_order_release);
}

void TraceStatus::NoteStop(uint64_t ticks, format::RecordingStop why, long error) {
  format::StatusArea& to = area();
  std::atomic_ref(to.stop_errno).store(static_cast<int32_t>(error), std::memory_order_relaxed);
  std::atomic_ref(to.stop_ticks).store(ticks, std::memory_order_relaxed);
  std::atomic_ref(to.stop_why).store(static_cast<uint32_t>(why), std::memory_order_release);
}

void TraceStatus::Write(long fd) {
  if (area_.load(std::memory_order_acquire) != &private_area_ || kEnd > sys::FileSizeLimit()) {
    return;
  }
  const uint64_t news = private_area_.lost_events + private_area_.missed_events +
                        private_area_.segments_begun + private_area_.stop_why;
  if (written_.exchange(news, std::memory_order_relaxed) == news) return;
  iovec part = {&private_area_, sizeof(private_area_)};
  sys::Pwritev(fd, &part, 1, kOffset);
}

}  // namespace memtrace
