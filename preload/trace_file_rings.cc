// The rings in a TraceFile: space for one, its mapping, and what becomes of both where either is
// refused.

#include <sys/mman.h>

#include <cerrno>

#include "preload/allowed_calls.h"
#include "preload/clock.h"
#include "preload/own_memory.h"
#include "preload/rounding.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"
#include "preload/trace_file.h"

namespace memtrace {

// `bytes` at `offset`, so that no store to a mapping of them can find the disk full.
long TraceFile::Allocate(long fd, uint64_t offset, uint64_t bytes) {
  long result = sys::Fallocate(fd, offset, bytes);
  if (result != -EOPNOTSUPP && result != -ENOSYS) return result;
  static constexpr char kZeros[4096] = {};
  result = 0;
  for (uint64_t done = 0; done < bytes && !sys::Failed(result); done += sizeof(kZeros)) {
    const uint64_t here = bytes - done < sizeof(kZeros) ? bytes - done : sizeof(kZeros);
    iovec part = {const_cast<char*>(kZeros), here};
    result = WriteAll(fd, &part, 1, offset + done);
  }
  return result;
}

// How far rings_end_ may go for the ring of `thread`. The rest of a file with a limit is for
// events.
uint64_t TraceFile::RingsLimit(uint32_t thread) const {
  if (segments_.on()) return segments_.rings_end();
  return max_bytes_ == 0 || thread == 1 ? UINT64_MAX : max_bytes_ / 4;
}

// Nothing: there is no room for more rings in a file with a limit.
std::optional<uint64_t> TraceFile::TakeRingSpace(uint64_t reserved, uint32_t thread) {
  const uint64_t limit = RingsLimit(thread);
  if (!segments_.on() && limit == UINT64_MAX) return TakeSpace(reserved, limit);
  const std::optional<uint64_t> ring = TakeUpTo(rings_end_, reserved, limit);
  if (!ring || segments_.on()) return ring;
  const std::optional<uint64_t> offset = TakeSpace(reserved, max_bytes_);
  if (!offset) rings_end_.fetch_sub(reserved, std::memory_order_relaxed);
  return offset;
}

// Who has no ring, or a small one, asks with every event or block: where there is no address space,
// or as many mappings as there may be, the file would be opened each time.
bool TraceFile::MappingWasRefused(size_t bytes) const {
  return bytes >= refused_mapping_bytes_.load(std::memory_order_relaxed) &&
         g_clock.MonotonicNs() < no_mapping_until_ns_.load(std::memory_order_relaxed);
}

// Null: refused. Not for want of address space: it never will be mapped.
void* TraceFile::MapShared(void* place, size_t bytes, int prot, int flags, long fd,
                           uint64_t offset) {
  constexpr uint64_t kPauseNs = 100'000'000;
  void* const mapping = sys::Mmap(place, bytes, prot, MAP_SHARED | flags, fd, offset);
  if (!sys::MmapFailed(mapping)) return mapping;
  const long result = reinterpret_cast<long>(mapping);
  if (result == -ENOMEM || result == -EAGAIN) {
    refused_mapping_bytes_.store(bytes, std::memory_order_relaxed);
    no_mapping_until_ns_.store(g_clock.MonotonicNs() + kPauseNs, std::memory_order_relaxed);
  } else {
    no_shared_mappings_.store(true, std::memory_order_relaxed);
  }
  Refuse(format::RecordingStop::kWriteFailed, result);
  return nullptr;
}

void TraceFile::GiveBackRing(uint64_t offset, uint64_t reserved, uint32_t thread) {
  if (segments_.on()) {
    uint64_t end = offset + reserved;
    rings_end_.compare_exchange_strong(end, offset, std::memory_order_relaxed);
    return;
  }
  if (max_bytes_ != 0 && thread != 1) rings_end_.fetch_sub(reserved, std::memory_order_relaxed);
  GiveBack(offset, reserved);
}

void* TraceFile::AppendRing(size_t ring_bytes, uint32_t thread) {
  if (no_shared_mappings_.load(std::memory_order_relaxed)) return nullptr;
  const SignalsBlocked no_handler;
  // One block whose payload reaches from its header over the padding to the
  // page-aligned ring and to the ring's end.
  const uint64_t reserved = format::kRingAlignment + ring_bytes;
  // Who has a small ring asks with each block: the file is not opened for that.
  if (rings_end_.load(std::memory_order_relaxed) + reserved > RingsLimit(thread)) return nullptr;
  void* mapping = nullptr;
  const auto append = [&](long fd) {  // -1: by the reserve
    void* const place = fd < 0 ? nullptr : MapShared(nullptr, ring_bytes, PROT_NONE, 0, fd, 0);
    if (fd >= 0 && place == nullptr) return;
    const std::optional<uint64_t> offset = TakeRingSpace(reserved, thread);
    if (!offset) {
      if (place != nullptr) sys::Munmap(place, ring_bytes);
      return;
    }
    const uint64_t ring = Up(*offset + sizeof(format::BlockHeader), format::kRingAlignment);
    format::BlockHeader header = {};
    header.kind = format::BlockKind::kRing;
    header.thread = thread;
    header.payload_bytes = header.content_bytes = static_cast<uint32_t>(reserved - sizeof(header));
    Seal(header);
    long why = 0;
    mapping = fd < 0 ? reserve_.Ring(*offset, header, ring, &why)
                     : MapRing(fd, *offset, reserved, header, ring, ring_bytes, place);
    // kElsewhere: other threads took the rest of the reserve meanwhile.
    if (sys::Failed(why)) Refuse(format::RecordingStop::kWriteFailed, why);
  };
  // One that is used up is not asked: the space for the ring would stay a gap.
  if (reserve_.mapped() && reserve_.HasRoom(end_->load(std::memory_order_relaxed), reserved,
                                            /*last_words=*/false)) {
    append(-1);
  } else if (!MappingWasRefused(ring_bytes)) {
    const OtherCalls calls;
    if (calls) WithFile(append);
  }
  if (mapping != nullptr) {
    sys::Madvise(mapping, ring_bytes, MADV_DONTFORK);
    CountRingBytes(static_cast<int64_t>(ring_bytes));
  }
  return mapping;
}

// The ring of AppendRing() in the file that is open at `fd`. `place` is address space for it, had
// before any of the file's space was taken: a ring that cannot be mapped leaves nothing there.
// Null: refused.
void* TraceFile::MapRing(long fd, uint64_t offset, uint64_t reserved, format::BlockHeader& header,
                         uint64_t ring, size_t ring_bytes, void* place) {
  long result = -EFBIG;
  if (offset + reserved <= sys::FileSizeLimit()) {
    // The space first: touching a page of a hole on a full disk would be SIGBUS.
    result = Allocate(fd, offset, reserved);
    iovec part = {&header, sizeof(header)};
    if (!sys::Failed(result)) result = WriteAll(fd, &part, 1, offset);
  }
  void* mapping = nullptr;
  if (sys::Failed(result)) {
    Refuse(format::RecordingStop::kWriteFailed, result);
  } else {
    // After mlockall(MCL_FUTURE) the place counts as locked, and the ring would beside it.
    sys::Call(SYS_munlock, reinterpret_cast<long>(place), static_cast<long>(ring_bytes));
    mapping =
        MapShared(place, ring_bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_POPULATE, fd, ring);
  }
  if (mapping == nullptr) {
    // It is there still: a mapping that this file has had can only be refused before the place is
    // given up for it.
    sys::Munmap(place, ring_bytes);
    GiveBackRing(offset, reserved, header.thread);
  }
  return mapping;
}

void TraceFile::ReleaseRing(void* ring, size_t ring_bytes) {
  // A hole in the reserve could become a mapping of the program's, and its chunk is ours to
  // give back as a whole.
  if (reserve_.Contains(ring)) {
    sys::Madvise(ring, ring_bytes, MADV_DONTNEED);
  } else {
    sys::Munmap(ring, ring_bytes);
  }
}

}  // namespace memtrace
