#include "preload/faults/fault_rings.h"

#include <cerrno>
#include <sys/mman.h>

#include "preload/own_memory.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

// The bytes of all rings of minor faults together; on two processors each has 32 pages. A record is
// 40 bytes for a page of 4096: 13 MiB of first touches on a processor while nobody allocates.
constexpr size_t kBudgetBytes = 256 << 10;
constexpr size_t kLargestRing = 128 << 10, kSmallestRing = 4 << 10;
constexpr size_t kMajorRing = 8 << 10;

perf_event_attr Attributes(bool major, bool user_only) {
  perf_event_attr attr = {};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.size = sizeof(attr);
  attr.config = major ? PERF_COUNT_SW_PAGE_FAULTS_MAJ : PERF_COUNT_SW_PAGE_FAULTS_MIN;
  attr.sample_period = 1;
  attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
  attr.exclude_kernel = user_only;
  attr.exclude_hv = 1;
  attr.inherit = 1;
  attr.inherit_thread = 1;  // not to fork children
  attr.sample_id_all = 1;   // the time of lost records
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  // Nobody waits for them.
  attr.watermark = 1;
  attr.wakeup_watermark = UINT32_MAX;
  return attr;
}

long OpenEvent(perf_event_attr attr, int cpu) {
  const auto open = [&] {
    return sys::Call(SYS_perf_event_open, reinterpret_cast<long>(&attr), 0, cpu, -1,
                     PERF_FLAG_FD_CLOEXEC);
  };
  long fd = open();
  if (fd == -EINVAL && attr.inherit_thread) {
    attr.inherit_thread = 0;  // before Linux 5.13: fork children's are told by their pid
    fd = open();
  }
  return fd;
}

constexpr size_t kMaskWords = 128;  // 8192 processors

}  // namespace

// `*step` is what failed.
long FaultRings::OpenRing(int cpu, bool major, bool user_only, Result::Step* step) {
  *step = Result::kEvents;
  const long fd = OpenEvent(Attributes(major, user_only), cpu);
  if (sys::Failed(fd)) return fd;
  *step = Result::kMapping;
  const size_t data = major && kMajorRing < ring_bytes_ ? kMajorRing : ring_bytes_;
  const size_t bytes = arch::kPageBytes + data;
  // It keeps the event without its descriptor.
  void* const page = sys::Mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
  sys::Close(fd);
  if (sys::MmapFailed(page)) return reinterpret_cast<long>(page);
  rings_[count_++] = {static_cast<perf_event_mmap_page*>(page),
                      static_cast<const uint8_t*>(page) + arch::kPageBytes, data, major,
                      /*was_full=*/false};
  CountRingBytes(static_cast<int64_t>(bytes));
  return 0;
}

void FaultRings::Forget() {
  for (; count_ > 0; --count_) {
    CountRingBytes(-static_cast<int64_t>(arch::kPageBytes + rings_[count_ - 1].bytes));
  }
}

void FaultRings::CloseAll() {
  for (; count_ > 0; --count_) {
    const size_t bytes = arch::kPageBytes + rings_[count_ - 1].bytes;
    sys::Munmap(rings_[count_ - 1].page, bytes);
    CountRingBytes(-static_cast<int64_t>(bytes));
  }
}

FaultRings::Result FaultRings::Open(bool user_only) {
  count_ = 0;
  pid_ = static_cast<uint32_t>(sys::Getpid());
  uint64_t mask[kMaskWords] = {};
  const long mask_bytes =
      sys::Call(SYS_sched_getaffinity, 0, sizeof(mask), reinterpret_cast<long>(mask));
  if (sys::Failed(mask_bytes)) return {Result::kProcessors, mask_bytes};
  size_t processors = 0;
  for (const uint64_t word : mask) processors += static_cast<size_t>(__builtin_popcountll(word));
  if (processors == 0 || 2 * processors > kMostRings) return {Result::kProcessors, -E2BIG};
  ring_bytes_ = kLargestRing;
  while (ring_bytes_ > kSmallestRing && ring_bytes_ * processors > kBudgetBytes) ring_bytes_ /= 2;
  Result result;
  result.with_kernel = !user_only;
  for (size_t cpu = 0; cpu < kMaskWords * 64; ++cpu) {
    if ((mask[cpu / 64] >> cpu % 64 & 1) == 0) continue;
    long error;
    for (;;) {
      error = OpenRing(static_cast<int>(cpu), /*major=*/false, !result.with_kernel, &result.step);
      if (!sys::Failed(error)) {
        error = OpenRing(static_cast<int>(cpu), /*major=*/true, !result.with_kernel, &result.step);
        break;
      }
      if (count_ == 0 && result.step == Result::kEvents && result.with_kernel &&
          (error == -EACCES || error == -EPERM)) {
        result.with_kernel = false;
      } else if (count_ == 0 && result.step == Result::kMapping && error == -EPERM &&
                 ring_bytes_ > kSmallestRing) {
        ring_bytes_ /= 4;  // pages that may be locked: other processes have most of them
      } else {
        break;
      }
    }
    // A processor that has just gone has no faults either.
    if (sys::Failed(error) && error != -ENODEV) {
      CloseAll();
      result.error = error;
      return result;
    }
  }
  result.step = Result::kOpened;
  return result;
}

bool FaultRings::HasMoreThan(uint64_t quarters) const {
  for (size_t i = 0; i < count_; ++i) {
    if (Head(rings_[i]) - rings_[i].page->data_tail > rings_[i].bytes / 4 * quarters) return true;
  }
  return false;
}

bool FaultRings::AnyWasFull() const {
  for (size_t i = 0; i < count_; ++i) {
    if (rings_[i].was_full) return true;
  }
  return false;
}

bool FaultRings::Parse(const Ring& ring, const uint64_t* words, size_t bytes,
                       FaultRecord* record) const {
  const auto type = static_cast<uint32_t>(words[0]);
  if (type == PERF_RECORD_LOST && bytes >= 40) {
    record->lost = words[2];
    record->ns = words[4];
    return true;
  }
  if (type != PERF_RECORD_SAMPLE || bytes != kRecordBytes) return false;
  if (static_cast<uint32_t>(words[2]) != pid_) return false;
  const uint32_t misc = static_cast<uint32_t>(words[0] >> 32) & PERF_RECORD_MISC_CPUMODE_MASK;
  record->major = ring.major;
  record->in_kernel = misc == PERF_RECORD_MISC_KERNEL;
  record->pc = record->in_kernel ? 0 : words[1];
  record->tid = static_cast<uint32_t>(words[2] >> 32);
  record->ns = words[3];
  record->address = words[4];
  return true;
}

}  // namespace memtrace
