#include "preload/trace_file.h"

#include <sys/mman.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>

#include "format/checksum.h"
#include "preload/allowed_calls.h"
#include "preload/clock.h"
#include "preload/descriptor_table.h"
#include "preload/event_ring.h"
#include "preload/own_memory.h"
#include "preload/rounding.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

constexpr uint64_t kRingReserve = format::kRingAlignment + EventRing::kBytes;

void Seal(format::BlockHeader& header) {
  header.magic = format::kBlockMagic;
  header.clock_ticks = g_clock.Now();
  header.monotonic_ns = g_clock.MonotonicNs();
  header.header_checksum = format::HeaderChecksum(header);
}

// All of `parts` or nothing useful: 0, or -errno.
long WriteAll(long fd, iovec* parts, int count, uint64_t offset) {
  while (count > 0) {
    long wrote = sys::Pwritev(fd, parts, count, offset);
    if (wrote == -EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? wrote : -EIO;
    offset += static_cast<uint64_t>(wrote);
    while (count > 0 && static_cast<size_t>(wrote) >= parts->iov_len) {
      wrote -= static_cast<long>(parts->iov_len);
      ++parts;
      --count;
    }
    if (count > 0) {
      parts->iov_base = static_cast<char*>(parts->iov_base) + wrote;
      parts->iov_len -= static_cast<size_t>(wrote);
    }
  }
  return 0;
}

// File systems that write what is written over to another place: btrfs, bcachefs, ZFS, F2FS.
// Space that was allocated, or written before, is no promise there: once a page has reached the
// disk, the next store to a mapping of it needs space again, and is SIGBUS where there is none.
// Nor is it with FS_NOCOW_FL.
bool WritesElsewhere(long fd) {
  struct statfs info;
  if (sys::Failed(sys::Call(SYS_fstatfs, fd, reinterpret_cast<long>(&info)))) return false;
  for (const uint32_t type : {0x9123683eu, 0xca451a4eu, 0x2fc12fc1u, 0xf2f52010u}) {
    if (static_cast<uint32_t>(info.f_type) == type) return true;
  }
  return false;
}

// Whether a file that could not be opened for this may be opened later, with the rights that the
// process has.
bool MayPass(long error) {
  uint64_t limit[2];
  switch (error) {
    case -ENFILE:
    case -ENOMEM:
      return true;
    case -EMFILE:  // not where no descriptor may be had ever again
      return sys::Failed(
                 sys::Call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, reinterpret_cast<long>(limit))) ||
             limit[1] != 0;
    default:
      return false;
  }
}

}  // namespace

long TraceFile::Create(const char* pattern, const TraceName::Values& values,
                       const format::FileHeader& header) {
  name_.Set(pattern, values);
  return WithDescriptor([&] { return CreateNamed(values, header); });
}

long TraceFile::CreateNamed(const TraceName::Values& values, const format::FileHeader& header) {
  const long fd = name_.CreateFile(values);
  if (sys::Failed(fd)) return fd;

  struct stat info;
  format::BlockHeader block = {};
  block.kind = format::BlockKind::kStatus;
  block.payload_bytes = block.content_bytes = sizeof(format::StatusArea);
  Seal(block);
  format::StatusArea status = TraceStatus::NewArea();
  status.leak_signal = leak_signal_;
  segments_.Off();
  if (keep_newest_) segments_.Init(max_bytes_, kRingReserve, &status, block.clock_ticks);
  iovec parts[] = {{const_cast<format::FileHeader*>(&header), sizeof(header)},
                   {&block, sizeof(block)},
                   {&status, sizeof(status)}};
  static_assert(sizeof(header) + sizeof(block) == TraceStatus::kOffset);
  long result = sys::Fstat(fd, &info);
  // The umask took away bits of the 0600, and the file must be opened again.
  if (!sys::Failed(result) && (info.st_mode & 07777) != 0600) {
    result = sys::Call(SYS_fchmod, fd, 0600);
  }
  if (!sys::Failed(result)) {
    result = TraceStatus::kEnd <= sys::FileSizeLimit() ? WriteAll(fd, parts, 3, 0) : -EFBIG;
  }
  if (sys::Failed(result)) {
    sys::Close(fd);
    sys::Unlink(name_.c_str());
    return result;
  }
  const bool writes_elsewhere = WritesElsewhere(fd);
  status_.Attach(fd, status, writes_elsewhere);
  sys::Close(fd);
  device_ = info.st_dev;
  inode_ = info.st_ino;
  ShareEnd();
  trace_id_ = header.trace_id;
  reserve_.Forget();
  making_reserve_.store(false, std::memory_order_relaxed);
  end_->store(Up(TraceStatus::kEnd, format::kBlockAlignment), std::memory_order_relaxed);
  rings_end_.store(segments_.on() ? segments_.metadata_end() : 0, std::memory_order_relaxed);
  last_error_.store(0, std::memory_order_relaxed);
  lost_records_.store(false, std::memory_order_relaxed);
  no_shared_mappings_.store(writes_elsewhere, std::memory_order_relaxed);
  no_mapping_until_ns_.store(0, std::memory_order_relaxed);
  return 0;
}

// A page of its own for each file: in a fork child the one before is its parent's.
void TraceFile::ShareEnd() {
  constexpr size_t kPage = arch::kPageBytes;
  if (end_ != &private_end_) {
    sys::Munmap(end_, kPage);
    CountRingBytes(-static_cast<int64_t>(kPage));
    end_ = &private_end_;
  }
  void* const page = sys::Mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
  if (sys::MmapFailed(page)) return;
  CountRingBytes(static_cast<int64_t>(kPage));
  end_ = static_cast<std::atomic<uint64_t>*>(page);
}

bool TraceFile::Refuse(format::RecordingStop why, long error) {
  last_stop_.store(why, std::memory_order_relaxed);
  last_error_.store(error < 0 ? -error : error, std::memory_order_relaxed);
  return false;
}

namespace {

constexpr int kOpenFlags = O_RDWR | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;

}  // namespace

long TraceFile::OpenNumbered() {
  const OpenNumbers::Opening opening(&open_numbers_);
  const long first = sys::Open(name_.c_str(), kOpenFlags);
  open_numbers_.Add(first);
  const long fd = sys::MoveUp(first);
  open_numbers_.Add(fd);
  return fd;
}

long TraceFile::OpenVerified() {
  const long fd = OpenNumbered();
  if (sys::Failed(fd)) {
    Refuse(format::RecordingStop::kOpenFailed, fd);
    return fd;
  }
  struct stat info;
  uint64_t id = 0;
  if (sys::Failed(sys::Fstat(fd, &info)) || info.st_dev != device_ || info.st_ino != inode_ ||
      sys::Pread(fd, &id, sizeof(id), offsetof(format::FileHeader, trace_id)) != sizeof(id) ||
      id != trace_id_) {
    sys::Close(fd);
    Refuse(format::RecordingStop::kFileReplaced, 0);
    return -ENOENT;
  }
  return fd;
}

void TraceFile::CloseInherited() {
  const auto close_if_ours = [this](long fd) {
    // Other files must not be asked for anything that their file system would have to answer.
    const long flags = sys::Call(SYS_fcntl, fd, F_GETFL);
    if (sys::Failed(flags)) return false;
    constexpr int kAsOpened = O_ACCMODE | O_NOFOLLOW | O_NONBLOCK;
    struct stat info;
    if ((flags & kAsOpened) == (kOpenFlags & kAsOpened) && !sys::Failed(sys::Fstat(fd, &info)) &&
        info.st_dev == device_ && info.st_ino == inode_) {
      sys::Close(fd);
    }
    return true;
  };
  open_numbers_.ForEachInherited(sys::kMovedUpFrom, close_if_ours);
}

template <typename Function>
long TraceFile::WithFile(Function write) {
  return WithOwnDescriptor([&] {
    const long fd = OpenVerified();
    if (sys::Failed(fd)) return fd;
    write(fd);
    sys::Close(fd);
    return 0L;
  });
}

void TraceFile::WriteStatus(uint64_t offset, const void* words, size_t bytes) {
  const SignalsBlocked calls;
  if (!calls || TraceStatus::kEnd > sys::FileSizeLimit()) return;
  WithFile([&](long fd) {
    iovec part = {const_cast<void*>(words), bytes};
    sys::Pwritev(fd, &part, 1, TraceStatus::kOffset + offset);
  });
}

void TraceFile::AnswerScan(uint64_t answer) {
  if (status_.AnswerScan(answer)) return;
  WriteStatus(offsetof(format::StatusArea, scan_answer), &answer, sizeof(answer));
}

void TraceFile::NoteScanFinished(uint32_t number) {
  if (status_.NoteScanFinished(number)) return;
  const decltype(format::StatusArea::scan_finished) finished = number;
  WriteStatus(offsetof(format::StatusArea, scan_finished), &finished, sizeof(finished));
}

void TraceFile::NoteNoScans(format::NoScans why) {
  if (!status_.NoteNoScans(why)) {
    WriteStatus(offsetof(format::StatusArea, no_scans), &why, sizeof(why));
  }
}

// Of the last Append, which failed.
format::RecordingStop TraceFile::WhyRefused() const {
  const format::RecordingStop why = last_stop();
  return why != format::RecordingStop{} ? why : format::RecordingStop::kOpenFailed;
}

void TraceFile::NoteLostScan(uint32_t number) {
  const format::RecordingStop why = WhyRefused();
  const long error = last_error();
  if (status_.NoteLostScan(number, why, error)) return;
  // Which was the first is not known here.
  const format::LostScans lost = {number, number, static_cast<uint32_t>(why),
                                  static_cast<int32_t>(error)};
  WriteStatus(offsetof(format::StatusArea, lost_scans), &lost, sizeof(lost));
}

void TraceFile::NoteLostEnd() {
  const format::RecordingStop why = WhyRefused();
  const long error = last_error();
  if (status_.NoteLostEnd(why, error)) return;
  const format::LostEnd lost = {static_cast<uint32_t>(why), static_cast<int32_t>(error)};
  WriteStatus(offsetof(format::StatusArea, lost_end), &lost, sizeof(lost));
}

namespace {

// Moves `end` on by `bytes`, and says where it was. Nothing: that is beyond `limit`.
std::optional<uint64_t> TakeUpTo(std::atomic<uint64_t>& end, uint64_t bytes, uint64_t limit) {
  uint64_t begin = end.load(std::memory_order_relaxed);
  do {
    if (begin + bytes > limit) return std::nullopt;
  } while (!end.compare_exchange_weak(begin, begin + bytes, std::memory_order_relaxed));
  return begin;
}

}  // namespace

// At the end of the file.
std::optional<uint64_t> TraceFile::TakeSpace(uint64_t bytes, uint64_t limit) {
  return TakeUpTo(*end_, bytes, limit);
}

// If nobody took space behind it: a disk that stays full must not make gaps.
void TraceFile::GiveBack(uint64_t offset, uint64_t bytes) {
  // Space from where a reserve may begin must not be given out again outside of it.
  if (making_reserve_.load() || reserve_.mapped()) return;
  uint64_t end = offset + bytes;
  end_->compare_exchange_strong(end, offset, std::memory_order_relaxed);
}

long TraceFile::Write(long fd, format::BlockHeader& header, const void* payload, uint64_t offset,
                      bool* torn) {
  const uint64_t bytes = sizeof(header) + header.payload_bytes;
  // Past RLIMIT_FSIZE the kernel would send SIGXFSZ to the program.
  if (offset + bytes > sys::FileSizeLimit()) return -EFBIG;
  iovec parts[2] = {{&header, sizeof(header)}, {const_cast<void*>(payload), header.payload_bytes}};
  const long result = WriteAll(fd, parts, 2, offset);
  if (sys::Failed(result)) {
    // A header with a part of its payload would stand for the block, which comes again under
    // the same number if its events were told anew. What was written can be written over.
    format::BlockHeader nothing = {};
    iovec part = {&nothing, sizeof(nothing)};
    uint32_t magic = 0;
    *torn = sys::Pread(fd, &magic, sizeof(magic), offset) == sizeof(magic) &&
            magic == format::kBlockMagic;
    if (*torn) WriteAll(fd, &part, 1, offset);
  }
  return result;
}

bool TraceFile::Append(format::BlockHeader& header, const void* payload, Keep keep, Keep* kept) {
  const bool records = header.kind == format::BlockKind::kMetadata;
  header.payload_checksum = format::Checksum(payload, header.payload_bytes);
  const uint64_t reserved = Up(sizeof(header) + header.payload_bytes, format::kBlockAlignment);
  if (kept != nullptr) *kept = Keep::kForEver;
  const SignalsBlocked no_handler;
  uint64_t limit = UINT64_MAX;
  if (segments_.on()) {
    if (!records || keep == Keep::kWhileNew) return AppendToSegment(header, payload, kept);
    limit = segments_.metadata_end();
    // Rather for a while than not at all.
    if (end_->load(std::memory_order_relaxed) + reserved > limit) {
      return AppendToSegment(header, payload, kept);
    }
  } else if (max_bytes_ != 0 && !records) {  // the end must still be told
    limit = max_bytes_;
  }
  if (reserve_.mapped()) {
    const uint64_t end = end_->load(std::memory_order_relaxed);
    if (end + reserved > limit || reserve_.HasRoom(end, reserved, /*last_words=*/records))
      return AppendToReserve(header, payload, reserved, limit);
  }
  return AppendToFile(header, payload, reserved, {limit, std::nullopt, kept});
}

bool TraceFile::AppendRecords(const void* records, size_t bytes, Keep keep, Keep* kept) {
  format::BlockHeader header = {};
  header.kind = format::BlockKind::kMetadata;
  header.payload_bytes = header.content_bytes = static_cast<uint32_t>(bytes);
  return Append(header, records, keep, kept);
}

bool TraceFile::AppendToFile(format::BlockHeader& header, const void* payload, uint64_t bytes,
                             Place place) {
  const bool records = header.kind == format::BlockKind::kMetadata;
  const OtherCalls calls;
  if (!calls) {
    return Refuse(reserve_.mapped() ? WhyReserveEnds() : format::RecordingStop::kSandboxed, 0);
  }
  bool written = false;
  const long opened = WithFile([&](long fd) {  // first: where it fails, no gap is left
    if (!place.offset) place.offset = TakeSpace(bytes, place.limit);
    if (!place.offset) return;
    written = WriteAt(fd, *place.offset, header, payload, bytes);
    status_.Write(fd);
  });
  if (sys::Failed(opened)) {
    if (records) lost_records_.store(true, std::memory_order_relaxed);
    // The program gave up the right to open it, and what was mapped for that is used up.
    if (reserve_.mapped() && !MayPass(opened)) Refuse(WhyReserveEnds(), 0);
    return false;
  }
  if (!place.offset) {
    return segments_.on() ? AppendToSegment(header, payload, place.kept)
                          : Refuse(format::RecordingStop::kMaxBytes, 0);
  }
  return written;
}

// `bytes` at `offset` were taken for it.
bool TraceFile::WriteAt(long fd, uint64_t offset, format::BlockHeader& header, const void* payload,
                        uint64_t bytes) {
  Seal(header);
  bool torn = false;
  const long result = Write(fd, header, payload, offset, &torn);
  if (!sys::Failed(result)) return true;
  if (!torn) GiveBack(offset, bytes);
  if (header.kind == format::BlockKind::kMetadata) {
    lost_records_.store(true, std::memory_order_relaxed);
  }
  return Refuse(format::RecordingStop::kWriteFailed, result);
}

bool TraceFile::AppendToReserve(format::BlockHeader& header, const void* payload, uint64_t bytes,
                                uint64_t limit) {
  const bool records = header.kind == format::BlockKind::kMetadata;
  const std::optional<uint64_t> offset = TakeSpace(bytes, limit);
  if (!offset) return Refuse(format::RecordingStop::kMaxBytes, 0);
  Seal(header);
  const long result = reserve_.Write(*offset, header, payload, /*last_words=*/records);
  if (result == 0) return true;
  if (result != TraceReserve::kElsewhere) {
    if (records) lost_records_.store(true, std::memory_order_relaxed);
    return Refuse(format::RecordingStop::kWriteFailed, result);
  }
  // Other threads took the rest of it meanwhile.
  return AppendToFile(header, payload, bytes, {limit, offset, nullptr});
}

bool TraceFile::AppendToSegment(format::BlockHeader& header, const void* payload, Keep* kept) {
  if (kept != nullptr) *kept = Keep::kWhileNew;
  const OtherCalls calls;
  if (!calls) return Refuse(format::RecordingStop::kSandboxed, 0);
  long result = -EBUSY;
  const long opened = WithFile([&](long fd) {
    Segments::Place place;
    const bool reserved = segments_.Reserve(
        Up(sizeof(header) + header.payload_bytes, format::kBlockAlignment), status_, &place);
    if (place.began) {
      status_.Write(fd);
      AskForNewStacks();
    }
    if (!reserved) return;
    bool torn = false;
    Seal(header);
    result = Write(fd, header, payload, place.offset, &torn);
    segments_.Finished(place);
  });
  if (sys::Failed(opened)) return false;
  return sys::Failed(result) ? Refuse(format::RecordingStop::kWriteFailed, result) : true;
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

format::RecordingStop TraceFile::WhyReserveEnds() const {
  // Whole chunks of what the limit allows.
  const bool at_limit =
      max_bytes_ != 0 && reserve_.end() + TraceReserve::kChunkBytes >
                             max_bytes_ + TraceReserve::kLastWordsBytes;
  return at_limit ? format::RecordingStop::kMaxBytes : format::RecordingStop::kReserveUsedUp;
}

long TraceFile::MakeReserve() {
  if (reserve_.mapped()) return 0;
  // Segments are written over, which is not what a reserve can do.
  if (segments_.on()) return -EOPNOTSUPP;
  if (making_reserve_.exchange(true)) return -EBUSY;  // another thread is about to
  long result = 0;
  const long opened = WithFile([&](long fd) {
    uint64_t limit = sys::FileSizeLimit();
    if (max_bytes_ != 0 && limit > max_bytes_ + TraceReserve::kLastWordsBytes) {
      limit = max_bytes_ + TraceReserve::kLastWordsBytes;
    }
    result = reserve_.Map(fd, end_->load(std::memory_order_relaxed), limit);
  });
  making_reserve_.store(false);
  return sys::Failed(opened) ? opened : result;
}

void TraceFile::LimitAddressSpace(uint64_t bytes) {
  reserve_.Shrink(end_->load(std::memory_order_relaxed), bytes / 16);
}

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

}  // namespace memtrace
