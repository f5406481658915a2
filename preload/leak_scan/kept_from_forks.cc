#include "preload/leak_scan/kept_from_forks.h"

#include <sys/mman.h>
#include <sys/utsname.h>

#include <cstring>

#include "preload/descriptor_table.h"
#include "preload/own_proc.h"
#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {
namespace {

constexpr size_t kBufferBytes = 64 << 10;  // a line is shorter: it has a path at most

uint64_t TakeDigits(std::string_view& text, unsigned base) {
  uint64_t value = 0;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text[0];
    const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                           : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
                                                  : 16;
    if (digit >= base) break;
    value = value * base + digit;
  }
  return value;
}

void SkipOne(std::string_view& text) {
  if (!text.empty()) text.remove_prefix(1);
}

bool CopiesPinnedPages() {
  utsname system;
  if (sys::Failed(sys::Call(SYS_uname, reinterpret_cast<long>(&system)))) return false;
  std::string_view release = system.release;
  const uint64_t major = TakeDigits(release, 10);
  SkipOne(release);
  const uint64_t minor = TakeDigits(release, 10);
  return major > 5 || (major == 5 && minor >= 10);
}

// visit(line) for each line of the file, without its end.
template <typename Visit>
long ForEachLine(const char* path, char* buffer, Visit visit) {
  const long fd = sys::Open(path, O_RDONLY | O_CLOEXEC);
  if (sys::Failed(fd)) return fd;
  long result = 0;
  size_t filled = 0;
  for (;;) {
    const long got = sys::Call(SYS_read, fd, reinterpret_cast<long>(buffer + filled),
                               static_cast<long>(kBufferBytes - filled));
    if (got == -EINTR) continue;
    if (got <= 0) break;
    result += got;
    filled += static_cast<size_t>(got);
    const char* line = buffer;
    const char* const end = buffer + filled;
    while (const void* const newline = memchr(line, '\n', static_cast<size_t>(end - line))) {
      const char* const line_end = static_cast<const char*>(newline);
      visit(std::string_view(line, static_cast<size_t>(line_end - line)));
      line = line_end + 1;
    }
    filled = static_cast<size_t>(end - line);
    if (filled == kBufferBytes) break;
    memmove(buffer, line, filled);
  }
  sys::Close(fd);
  return result;
}

bool IsOurs(const ScanJob& job, uintptr_t begin, uintptr_t end) {
  for (size_t i = 0; i < job.own_count; ++i) {
    if (job.own[i].begin < end && begin < job.own[i].end) return true;
  }
  return false;
}

bool Advise(const OwnRange& range, int advice) {
  return !sys::Failed(
      sys::Madvise(reinterpret_cast<void*>(range.begin), range.end - range.begin, advice));
}

}  // namespace

bool SmapsFlags::Take(std::string_view line) {
  constexpr std::string_view kFlags = "VmFlags:";
  if (line.empty()) return false;
  // Fields begin with a capital letter, a mapping with its address.
  if (line[0] < 'A' || line[0] > 'Z') {
    begin_ = TakeDigits(line, 16);
    SkipOne(line);
    end_ = TakeDigits(line, 16);
    SkipOne(line);
    is_private_ = line.size() > 3 && line[3] == 'p';
    return false;
  }
  return is_private_ && line.starts_with(kFlags) &&
         From(line, kFlags.size()).find(" dc") != std::string_view::npos;
}

void KeptFromForks::Lend(const ScanJob& job) {
  if (!CopiesPinnedPages()) return;
  ranges_ = static_cast<OwnRange*>(OwnMap(kMost * sizeof(OwnRange), /*touch=*/false));
  auto* const buffer = static_cast<char*>(OwnMap(kBufferBytes, /*touch=*/false));
  if (ranges_ != nullptr && buffer != nullptr) {
    WithDescriptor([&] {
      return ReadOwnProc("smaps", [&](const char* path) {
        SmapsFlags flags;
        size_ = 0;
        return ForEachLine(path, buffer, [&](std::string_view line) {
          if (!flags.Take(line) || IsOurs(job, flags.begin(), flags.end())) return;
          if (size_ < kMost) ranges_[size_++] = {flags.begin(), flags.end()};
        });
      });
    });
  }
  if (buffer != nullptr) OwnUnmap(buffer, kBufferBytes);
  // Not while the mappings are read, of which it makes others. Of a device's it is refused.
  size_t kept = 0;
  for (size_t i = 0; i < size_; ++i) {
    if (Advise(ranges_[i], MADV_DOFORK)) ranges_[kept++] = ranges_[i];
  }
  size_ = kept;
}

KeptFromForks::~KeptFromForks() {
  for (size_t i = 0; i < size_; ++i) Advise(ranges_[i], MADV_DONTFORK);
  if (ranges_ != nullptr) OwnUnmap(ranges_, kMost * sizeof(OwnRange));
}

}  // namespace memtrace
