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

void TraceFile::Seal(format::BlockHeader& header) {
  header.magic = format::kBlockMagic;
  header.clock_ticks = g_clock.Now();
  header.monotonic_ns = g_clock.MonotonicNs();
  header.header_checksum = format::HeaderChecksum(header);
}

// All of `parts` or nothing useful: 0, or -errno.
long TraceFile::WriteAll(long fd, iovec* parts, int count, uint64_t offset) {
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

long TraceFile::Create(const char* pattern, const TraceName::Values& values,
                       const format::FileHeader& header) {
  const TraceName before = name_;
  name_.Set(pattern, values);
  const long created = WithDescriptor([&] { return CreateNamed(values, header); });
  if (sys::Failed(created) && forsaken_.load(std::memory_order_relaxed)) name_ = before;
  return created;
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
  forsaken_.store(false, std::memory_order_relaxed);
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
  if (forsaken_.load(std::memory_order_relaxed)) return -ENOENT;
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

void TraceFile::NoteUntracedChild(long error) {
  error = error < 0 ? -error : error;
  if (status_.NoteUntracedChild(error)) return;
  const SignalsBlocked calls;
  if (!calls || TraceStatus::kEnd > sys::FileSizeLimit()) return;
  constexpr uint64_t kPlace =
      TraceStatus::kOffset + offsetof(format::StatusArea, untraced_children);
  forsaken_.store(false, std::memory_order_relaxed);
  WithFile([&](long fd) {
    // Of two children at once one may be missing in the number, which is not 0 all the same.
    format::UntracedChildren children = {};
    if (sys::Pread(fd, &children, sizeof(children), kPlace) != sizeof(children)) return;
    ++children.count;
    children.error = static_cast<int32_t>(error);
    iovec part = {&children, sizeof(children)};
    sys::Pwritev(fd, &part, 1, kPlace);
  });
  forsaken_.store(true, std::memory_order_relaxed);
}

// Moves `end` on by `bytes`, and says where it was. Nothing: that is beyond `limit`.
std::optional<uint64_t> TraceFile::TakeUpTo(std::atomic<uint64_t>& end, uint64_t bytes,
                                            uint64_t limit) {
  uint64_t begin = end.load(std::memory_order_relaxed);
  do {
    if (begin + bytes > limit) return std::nullopt;
  } while (!end.compare_exchange_weak(begin, begin + bytes, std::memory_order_relaxed));
  return begin;
}

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

}  // namespace memtrace
