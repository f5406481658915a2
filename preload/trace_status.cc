#include "preload/trace_status.h"

#include <sys/mman.h>

#include "preload/arch/arch.h"
#include "preload/own_memory.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

constexpr size_t kPage = arch::kPageBytes;
static_assert(TraceStatus::kEnd <= kPage);

}  // namespace

format::StatusArea TraceStatus::NewArea() {
  format::StatusArea area = {};
  area.magic = format::kStatusMagic;
  area.bytes = sizeof(area);
  return area;
}

void TraceStatus::Attach(long fd, const format::StatusArea& initial, bool stores_take_space) {
  Forsake();
  private_area_ = initial;
  stores_take_space_ = stores_take_space;
  written_.store(0, std::memory_order_relaxed);  // what the file before had is not in this one
  if (mapping_ != nullptr) {
    sys::Munmap(mapping_, kPage);
    CountRingBytes(-static_cast<int64_t>(kPage));
  }
  void* const mapping = sys::Mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  mapping_ = sys::MmapFailed(mapping) ? nullptr : mapping;
  if (mapping_ == nullptr) return;
  CountRingBytes(static_cast<int64_t>(kPage));
  scans_.store(mapped(), std::memory_order_release);
  if (!stores_take_space) area_.store(mapped(), std::memory_order_release);
}

// Whether a store to the mapping would not be SIGBUS.
bool TraceStatus::MayStore() const {
  return !stores_take_space_ ||
         !sys::Failed(sys::Madvise(mapping_, kPage, MADV_POPULATE_WRITE));
}

// Null: a store could be SIGBUS.
format::StatusArea* TraceStatus::ScansForStoring() {
  format::StatusArea* const scans = scans_.load(std::memory_order_acquire);
  return scans == &private_area_ || MayStore() ? scans : nullptr;
}

bool TraceStatus::AnswerScan(uint64_t answer) {
  format::StatusArea* const to = ScansForStoring();
  if (to != nullptr) std::atomic_ref(to->scan_answer).store(answer, std::memory_order_release);
  return to != nullptr;
}

bool TraceStatus::NoteScanFinished(uint32_t number) {
  format::StatusArea* const to = ScansForStoring();
  if (to != nullptr) Raise(to->scan_finished, number);
  return to != nullptr;
}

bool TraceStatus::NoteNoScans(format::NoScans why) {
  format::StatusArea* const to = ScansForStoring();
  if (to != nullptr) {
    std::atomic_ref(to->no_scans).store(static_cast<uint32_t>(why), std::memory_order_release);
  }
  return to != nullptr;
}

// Null: a store could be SIGBUS, or is seen by this process alone.
format::StatusArea* TraceStatus::SharedForStoring() {
  format::StatusArea* const to = ScansForStoring();
  return to != &private_area_ ? to : nullptr;
}

bool TraceStatus::NoteLostScan(uint32_t number, format::RecordingStop why, long error) {
  format::StatusArea* const to = SharedForStoring();
  if (to == nullptr) return false;
  format::LostScans& lost = to->lost_scans;
  std::atomic_ref(lost.why).store(static_cast<uint32_t>(why), std::memory_order_relaxed);
  std::atomic_ref(lost.error).store(static_cast<int32_t>(error), std::memory_order_relaxed);
  std::atomic_ref(lost.last).store(number, std::memory_order_relaxed);
  uint32_t none = 0;
  std::atomic_ref(lost.first).compare_exchange_strong(none, number, std::memory_order_release);
  return true;
}

bool TraceStatus::NoteLostEnd(format::RecordingStop why, long error) {
  format::StatusArea* const to = SharedForStoring();
  if (to == nullptr) return false;
  std::atomic_ref(to->lost_end.error).store(static_cast<int32_t>(error), std::memory_order_relaxed);
  std::atomic_ref(to->lost_end.why).store(static_cast<uint32_t>(why), std::memory_order_release);
  return true;
}

bool TraceStatus::NoteUntracedChild(long error) {
  if (mapping_ == nullptr || !MayStore()) return false;
  format::UntracedChildren& children = mapped()->untraced_children;
  std::atomic_ref(children.error).store(static_cast<int32_t>(error), std::memory_order_relaxed);
  std::atomic_ref(children.count).fetch_add(1, std::memory_order_release);
  return true;
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
  // The part that other programs write is behind this, and must stay; so must what is lost without
  // being events, which a copy of the process may have written (TraceFile::NoteLostScan()).
  const bool has_requests = scans_.load(std::memory_order_acquire) != &private_area_;
  iovec part = {&private_area_, has_requests ? offsetof(format::StatusArea, scan_request)
                                             : offsetof(format::StatusArea, lost_scans)};
  sys::Pwritev(fd, &part, 1, kOffset);
}

}  // namespace memtrace
