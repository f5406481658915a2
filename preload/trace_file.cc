#include "preload/trace_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "format/checksum.h"
#include "preload/allowed_calls.h"
#include "preload/clock.h"
#include "preload/own_memory.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

constexpr uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

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

void Expand(const char* pattern, const char* directory, std::string_view program, int pid,
            uint64_t start_ns, Text<4352>& path) {
  if (pattern[0] != '/') path << directory << "/";
  for (const char* p = pattern; *p != 0; ++p) {
    if (*p != '%') {
      path << std::string_view(p, 1);
    } else if (p[1] == 'e') {
      path << program, ++p;
    } else if (p[1] == 'p') {
      path << pid, ++p;
    } else if (p[1] == 't') {
      path << start_ns, ++p;
    } else if (p[1] == '%') {
      path << "%", ++p;
    } else {
      path << "%";
    }
  }
}

}  // namespace

long TraceFile::Create(const char* pattern, const char* working_directory, const char* program,
                       int pid, uint64_t start_ns, const format::FileHeader& header) {
  path_.Clear();
  Expand(pattern, working_directory, program, pid, start_ns, path_);
  const Text<4352> wanted = path_;
  const std::string_view name = wanted.view();
  size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.find('/', dot) != std::string_view::npos) {
    dot = name.size();
  }
  long fd = -ENAMETOOLONG;
  for (int attempt = 0; attempt < 100'000 && !path_.cut(); ++attempt) {
    if (attempt > 0) {
      path_.Clear();
      path_ << First(name, dot) << "." << attempt << From(name, dot);
    }
    fd = sys::Open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY, 0600);
    if (fd != -EEXIST) break;
  }
  if (sys::Failed(fd)) return fd;

  struct stat info;
  iovec part = {const_cast<format::FileHeader*>(&header), sizeof(header)};
  long result = sys::Fstat(fd, &info);
  // The umask took away bits of the 0600, and the file must be opened again.
  if (!sys::Failed(result) && (info.st_mode & 07777) != 0600) {
    result = sys::Call(SYS_fchmod, fd, 0600);
  }
  if (!sys::Failed(result)) result = WriteAll(fd, &part, 1, 0);
  sys::Close(fd);
  if (sys::Failed(result)) {
    sys::Unlink(path_.c_str());
    return result;
  }
  device_ = info.st_dev;
  inode_ = info.st_ino;
  trace_id_ = header.trace_id;
  end_.store(sizeof(header), std::memory_order_relaxed);
  reserve_.Forget();
  making_reserve_.store(false, std::memory_order_relaxed);
  last_error_.store(0, std::memory_order_relaxed);
  return 0;
}

bool TraceFile::Refuse(format::RecordingStop why, long error) {
  last_stop_.store(why, std::memory_order_relaxed);
  last_error_.store(error < 0 ? -error : error, std::memory_order_relaxed);
  return false;
}

long TraceFile::OpenVerified() {
  const long fd = sys::Open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
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

bool TraceFile::Append(format::BlockHeader& header, const void* payload) {
  const uint64_t bytes = sizeof(header) + header.payload_bytes;
  const uint64_t limit = max_bytes_;
  const bool small = header.kind == format::BlockKind::kMetadata;  // the end must still be told
  if (limit != 0 && !small && end_.load(std::memory_order_relaxed) + bytes > limit) {
    return Refuse(format::RecordingStop::kMaxBytes, 0);
  }
  header.payload_checksum = format::Checksum(payload, header.payload_bytes);
  Seal(header);
  const SignalsBlocked no_handler;
  const uint64_t rounded = RoundUp(bytes, format::kBlockAlignment);
  if (!reserve_.mapped()) {
    const OtherCalls calls;
    if (!calls) return Refuse(format::RecordingStop::kSandboxed, 0);
    const long fd = OpenVerified();  // first: where it fails, no gap is left
    if (sys::Failed(fd)) return false;
    const bool written =
        WriteAt(fd, end_.fetch_add(rounded, std::memory_order_relaxed), header, payload);
    sys::Close(fd);
    return written;
  }
  const uint64_t offset = end_.fetch_add(rounded, std::memory_order_relaxed);
  switch (reserve_.Write(offset, header, payload, small)) {
    case TraceReserve::Result::kWritten:
      return true;
    case TraceReserve::Result::kFailed:
      return Refuse(format::RecordingStop::kWriteFailed, ENOSPC);
    case TraceReserve::Result::kElsewhere:
      break;
  }
  // It is used up.
  const OtherCalls calls;
  const long fd = calls ? OpenVerified() : -EPERM;
  if (sys::Failed(fd)) return Refuse(format::RecordingStop::kSandboxed, 0);
  const bool written = WriteAt(fd, offset, header, payload);
  sys::Close(fd);
  return written;
}

bool TraceFile::WriteAt(long fd, uint64_t offset, format::BlockHeader& header,
                        const void* payload) {
  const uint64_t bytes = sizeof(header) + header.payload_bytes;
  long result = -EFBIG;
  // Past RLIMIT_FSIZE the kernel would send SIGXFSZ to the program.
  if (offset + bytes <= sys::FileSizeLimit()) {
    iovec parts[2] = {{&header, sizeof(header)},
                      {const_cast<void*>(payload), header.payload_bytes}};
    result = WriteAll(fd, parts, 2, offset);
  }
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

long TraceFile::MakeReserve() {
  if (reserve_.mapped()) return 0;
  if (making_reserve_.exchange(true)) return -EBUSY;  // another thread is about to
  const long fd = OpenVerified();
  if (sys::Failed(fd)) {
    making_reserve_.store(false);
    return fd;
  }
  uint64_t limit = sys::FileSizeLimit();
  if (max_bytes_ != 0 && limit > max_bytes_ + TraceReserve::kLastWordsBytes) {
    limit = max_bytes_ + TraceReserve::kLastWordsBytes;
  }
  const long result = reserve_.Map(fd, end_.load(std::memory_order_relaxed), limit);
  sys::Close(fd);
  making_reserve_.store(false);
  return result;
}

void TraceFile::LimitAddressSpace(uint64_t bytes) {
  reserve_.Shrink(end_.load(std::memory_order_relaxed), bytes / 16);
}

void* TraceFile::AppendRing(size_t ring_bytes, uint32_t thread) {
  const SignalsBlocked no_handler;
  const bool by_reserve = reserve_.mapped();
  const OtherCalls calls;
  if (!by_reserve && !calls) return nullptr;
  const long fd = by_reserve ? -ENOENT : OpenVerified();
  if (sys::Failed(fd) && !by_reserve) return nullptr;
  // One block whose payload reaches from its header over the padding to the
  // page-aligned ring and to the ring's end.
  const uint64_t reserved = format::kRingAlignment + ring_bytes;
  const uint64_t offset = end_.fetch_add(reserved, std::memory_order_relaxed);
  const uint64_t ring = RoundUp(offset + sizeof(format::BlockHeader), format::kRingAlignment);
  format::BlockHeader header = {};
  header.kind = format::BlockKind::kRing;
  header.thread = thread;
  header.payload_bytes = header.content_bytes =
      static_cast<uint32_t>(offset + reserved - offset - sizeof(header));
  Seal(header);
  void* mapping = nullptr;
  if (by_reserve) {
    mapping = reserve_.Ring(offset, header, ring);
    if (mapping == nullptr) Refuse(format::RecordingStop::kWriteFailed, ENOSPC);
  } else if (ring + ring_bytes <= sys::FileSizeLimit()) {
    iovec part = {&header, sizeof(header)};
    // The space first: touching a page of a hole on a full disk would be SIGBUS.
    long result = sys::Fallocate(fd, offset, reserved);
    if (!sys::Failed(result)) result = WriteAll(fd, &part, 1, offset);
    if (!sys::Failed(result)) {
      mapping = sys::Mmap(nullptr, ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                          fd, ring);
      if (sys::MmapFailed(mapping)) {
        Refuse(format::RecordingStop::kWriteFailed, reinterpret_cast<long>(mapping));
        mapping = nullptr;
      }
    } else {
      Refuse(format::RecordingStop::kWriteFailed, result);
    }
  }
  if (!by_reserve) sys::Close(fd);
  if (mapping != nullptr) {
    sys::Madvise(mapping, ring_bytes, MADV_DONTFORK);
    CountRingBytes(static_cast<int64_t>(ring_bytes));
  }
  return mapping;
}

}  // namespace memtrace
