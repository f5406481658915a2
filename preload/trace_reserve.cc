#include "preload/trace_reserve.h"

#include <sys/mman.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>

#include "preload/own_memory.h"
#include "preload/rounding.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

constexpr uint64_t Least(uint64_t a, uint64_t b) { return a < b ? a : b; }

// File systems that have no holes: extending a file writes it out. FAT, exFAT, HFS, HFS+.
bool HasNoHoles(long fd) {
  struct statfs info;
  if (sys::Failed(sys::Call(SYS_fstatfs, fd, reinterpret_cast<long>(&info)))) return true;
  for (const uint32_t type : {0x4d44u, 0x2011bab0u, 0x4244u, 0x482bu}) {
    if (static_cast<uint32_t>(info.f_type) == type) return true;
  }
  return false;
}

// A sixteenth of what the process may map: the program has its own plans for the rest.
uint64_t AddressSpace() {
  const uint64_t limit = sys::AddressSpaceLimit();
  return limit == UINT64_MAX ? UINT64_MAX : Down(limit / 16, arch::kPageBytes);
}

long PopulateForWriting(void* address, uint64_t bytes) {
  for (int attempt = 0;; ++attempt) {
    const long result = sys::Madvise(address, bytes, MADV_POPULATE_WRITE);
    if ((result != -EINTR && result != -EAGAIN) || attempt == 100) return result;
  }
}

}  // namespace

// A writer that was counted may go on with what it has read of end_; Shrink() waits for it.
class TraceReserve::Use {
 public:
  explicit Use(TraceReserve& reserve) : users_(reserve.users_) { users_.fetch_add(1); }
  ~Use() { users_.fetch_sub(1); }

 private:
  std::atomic<uint32_t>& users_;
};

// Extends the file by `bytes` behind map_begin_ and maps them at `*base`.
TraceReserve::Tried TraceReserve::TryMap(long fd, uint64_t bytes, char** base, long* error) {
  *error =
      allocated_ ? sys::Fallocate(fd, map_begin_, bytes) : sys::Ftruncate(fd, map_begin_ + bytes);
  if (sys::Failed(*error)) return Tried::kTooMuch;  // smaller files here, or less space
  void* const mapping =
      sys::Mmap(nullptr, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, map_begin_);
  if (sys::MmapFailed(mapping)) {
    *error = reinterpret_cast<long>(mapping);
    const bool never = *error == -ENODEV || *error == -EACCES;  // no shared mappings here
    return never ? Tried::kRefused : Tried::kTooMuch;  // RLIMIT_MEMLOCK after mlockall(MCL_FUTURE)
  }
  *base = static_cast<char*>(mapping);
  // After mlockall(MCL_FUTURE) it counts as locked, and who then gives up CAP_IPC_LOCK is over
  // the limit with every mapping more.
  sys::Call(SYS_munlock, reinterpret_cast<long>(*base), static_cast<long>(bytes));
  if (allocated_) return Tried::kMapped;
  // The kernel must be able to populate: asked of the first page.
  *error = sys::Mprotect(*base, arch::kPageBytes, PROT_READ | PROT_WRITE);
  if (!sys::Failed(*error)) *error = PopulateForWriting(*base, arch::kPageBytes);
  if (!sys::Failed(*error)) return Tried::kMapped;
  sys::Munmap(*base, bytes);
  return *error == -EINVAL ? Tried::kCannotPopulate : Tried::kRefused;
}

long TraceReserve::Map(long fd, uint64_t begin, uint64_t limit) {
  map_begin_ = Down(begin, arch::kPageBytes);
  allocated_ = !may_populate_ || HasNoHoles(fd);
  const uint64_t space = Least(AddressSpace(), limit - Least(limit, map_begin_));
  uint64_t bytes = Down(Least(allocated_ ? kAllocatedBytes : kBytes, space), kChunkBytes);
  char* base = nullptr;
  long error = -ENOSPC;
  Tried tried = Tried::kTooMuch;
  const auto try_less_and_less = [&] {
    for (; bytes >= kSmallestBytes; bytes = Down(bytes / 4, kChunkBytes)) {
      tried = TryMap(fd, bytes, &base, &error);
      if (tried != Tried::kTooMuch) return;
    }
  };
  try_less_and_less();
  if (tried == Tried::kCannotPopulate) {
    allocated_ = true;
    bytes = Least(bytes, kAllocatedBytes);
    try_less_and_less();
  }
  if (tried != Tried::kMapped) return error;
  chunks_bytes_ = Up(bytes / kChunkBytes * sizeof(chunks_[0]), arch::kPageBytes);
  chunks_ = static_cast<std::atomic<uint32_t>*>(OwnMap(chunks_bytes_, /*touch=*/false));
  if (chunks_ == nullptr) {
    sys::Munmap(base, bytes);
    return -ENOMEM;
  }
  sys::Madvise(base, bytes, MADV_DONTFORK);
  sys::Madvise(base, bytes, MADV_DONTDUMP);
  base_ = base;
  begin_ = begin;
  map_end_ = map_begin_ + bytes;
  chunks_[0].store(static_cast<uint32_t>(begin - map_begin_), std::memory_order_relaxed);
  end_.store(map_end_, std::memory_order_release);
  return 0;
}

void TraceReserve::LetFork(bool yes) {
  if (!mapped()) return;
  sys::Madvise(base_, map_end_ - map_begin_, yes ? MADV_DOFORK : MADV_DONTFORK);
}

bool TraceReserve::MustNotPopulate(uint64_t from) {
  may_populate_ = false;
  if (!mapped() || allocated_) return true;
  Shrink(from, kPopulatedBytes);
  const uint64_t begin = from < begin_ ? begin_ : from, end = end_.load();
  if (end <= begin || sys::Failed(Populate(begin, end - begin))) return false;
  allocated_ = true;
  return true;
}

long TraceReserve::Populate(uint64_t offset, uint64_t bytes) {
  char* const first = At(Down(offset, arch::kPageBytes));
  const uint64_t length = Up(offset + bytes, arch::kPageBytes) - Down(offset, arch::kPageBytes);
  const long result = sys::Mprotect(first, length, PROT_READ | PROT_WRITE);
  if (sys::Failed(result) || allocated_) return result;
  const long populated = PopulateForWriting(first, length);
  return populated == -EFAULT ? -ENOSPC : populated;  // where a store would be SIGBUS
}

// The header last: who follows the file takes no block before it is whole.
void TraceReserve::Put(uint64_t offset, const format::BlockHeader& header, const void* payload,
                       size_t bytes) {
  if (bytes != 0) memcpy(At(offset) + sizeof(header), payload, bytes);
  std::atomic_thread_fence(std::memory_order_release);
  memcpy(At(offset), &header, sizeof(header));
}

void TraceReserve::Done(uint64_t offset, uint64_t bytes, bool ring) {
  const uint64_t end = offset + bytes;
  while (offset < end) {
    const uint64_t index = (offset - map_begin_) / kChunkBytes;
    const uint64_t chunk_end = map_begin_ + (index + 1) * kChunkBytes;
    const auto here = static_cast<uint32_t>(Least(end, chunk_end) - offset);
    if (ring) chunks_[index].fetch_or(kHasRing, std::memory_order_relaxed);
    const uint32_t done = chunks_[index].fetch_add(here, std::memory_order_acq_rel) + here;
    if ((done & ~kHasRing) == kChunkBytes) {
      char* const chunk = At(chunk_end - kChunkBytes);
      if (done & kHasRing) {
        sys::Madvise(chunk, kChunkBytes, MADV_DONTNEED);
      } else if (void* const closed =
                     sys::Mmap(chunk, kChunkBytes, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
                 sys::MmapFailed(closed)) {
        // This fails for instance when all mappings to come are locked, and no more may be.
        sys::Madvise(chunk, kChunkBytes, MADV_DONTNEED);
        sys::Mprotect(chunk, kChunkBytes, PROT_NONE);
      } else {  // also where it was locked, when nothing else would give the pages back
        sys::Madvise(chunk, kChunkBytes, MADV_DONTFORK);
      }
    }
    offset += here;
  }
}

bool TraceReserve::HasRoom(uint64_t offset, uint64_t bytes, bool last_words) const {
  const uint64_t end = end_.load();
  const uint64_t usable = end - (last_words ? 0 : Least(end, kLastWordsBytes));
  return offset >= begin_ && offset + bytes <= usable;
}

long TraceReserve::Write(uint64_t offset, const format::BlockHeader& header, const void* payload,
                         bool last_words) {
  const Use use(*this);
  const uint64_t bytes = Up(sizeof(header) + header.payload_bytes, format::kBlockAlignment);
  if (!HasRoom(offset, bytes, last_words)) return kElsewhere;
  if (const long result = Populate(offset, bytes); sys::Failed(result)) return result;
  Put(offset, header, payload, header.payload_bytes);
  Done(offset, bytes, /*ring=*/false);
  return 0;
}

void* TraceReserve::Ring(uint64_t offset, const format::BlockHeader& header, uint64_t ring,
                         long* why) {
  const Use use(*this);
  const uint64_t bytes = sizeof(header) + header.payload_bytes;
  const uint64_t end = end_.load();
  *why = kElsewhere;
  if (offset < begin_ || offset + bytes > end - Least(end, kLastWordsBytes)) return nullptr;
  *why = Populate(offset, bytes);
  if (sys::Failed(*why)) return nullptr;
  Put(offset, header, nullptr, 0);
  // Behind the ring up to the next block, and it, nothing is written by others.
  Done(offset, bytes, /*ring=*/true);
  return At(ring);
}

void TraceReserve::Shrink(uint64_t from, uint64_t bytes) {
  const uint64_t end = end_.load();
  const uint64_t wanted = Up(from + bytes, arch::kPageBytes);
  if (end == 0 || wanted >= end) return;
  end_.store(wanted);
  // A writer is done within microseconds, unless it is stopped: then the address space stays.
  for (int i = 0; i < 100'000; ++i) {
    if (users_.load() == 0) {
      sys::Munmap(At(wanted), map_end_ - wanted);
      map_end_ = wanted;
      return;
    }
  }
}

void TraceReserve::Forget() {
  end_.store(0, std::memory_order_release);
  users_.store(0, std::memory_order_relaxed);
  base_ = nullptr;
  if (chunks_ != nullptr) OwnUnmap(chunks_, chunks_bytes_);
  chunks_ = nullptr;
}

}  // namespace memtrace
