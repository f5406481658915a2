#include "preload/leak_scan/kept_from_forks.h"

#include <sys/mman.h>
#include <sys/utsname.h>

#include <cstring>

#include "preload/descriptor_table.h"
#include "preload/own_proc.h"
#include "preload/proc_text.h"
#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {
namespace {

constexpr size_t kSmapsBytes = 64 << 10;  // a line is shorter: it has a path at most

bool CopiesPinnedPages() {
  utsname system;
  if (sys::Failed(sys::Call(SYS_uname, reinterpret_cast<long>(&system)))) return false;
  std::string_view release = system.release;
  const uint64_t major = TakeNumber(release, 10);
  if (!release.empty()) release.remove_prefix(1);
  const uint64_t minor = TakeNumber(release, 10);
  return major > 5 || (major == 5 && minor >= 10);
}

// visit(line) for each line of the file, without its end.
template <typename Visit>
long ForEachLine(const char* path, char* buffer, Visit visit) {
  const long fd = sys::OpenBriefly(path);
  if (sys::Failed(fd)) return fd;
  long result = 0;
  size_t filled = 0;
  for (;;) {
    const long got = sys::Call(SYS_read, fd, reinterpret_cast<long>(buffer + filled),
                               static_cast<long>(kSmapsBytes - filled));
    if (got == -EINTR) continue;
    if (got < 0) result = got;
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
    if (filled == kSmapsBytes) break;
    memmove(buffer, line, filled);
  }
  sys::Close(fd);
  return result;
}

// "VmPin:" or "VmLck:" of the process's status, in bytes; UINT64_MAX: not told.
uint64_t BytesOf(std::string_view name, std::string_view status) {
  uint64_t kb = 0;
  return StatusKb(status, name, &kb) ? kb << 10 : UINT64_MAX;
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

SmapsFlags::What SmapsFlags::Take(std::string_view line) {
  constexpr std::string_view kFlags = "VmFlags:";
  MapLine map;
  if (ParseMapLine(line, &map)) {
    begin_ = map.begin;
    end_ = map.end;
    is_data_ = map.permissions.starts_with('r') && map.permissions.ends_with('p');
    has_file_ = map.inode != 0;
    return kNeither;
  }
  if (!line.starts_with(kFlags)) return kNeither;
  const std::string_view flags = From(line, kFlags.size());
  const auto has = [flags](std::string_view flag) { return flags.find(flag) != flags.npos; };
  if (has(" lo")) locked_bytes_ += end_ - begin_;
  if (!is_data_ || !has(" dc")) return kNeither;
  // A device's, huge pages of their own, what the kernel may drop.
  const bool is_special = has(" io") || has(" pf") || has(" mm") || has(" ht") || has(" dp");
  return is_special || has_file_ ? kOther : kPlain;
}

bool KeptFromForks::Find(const ScanJob& job, char* buffer) {
  const std::string_view status = ReadOwnStatus(buffer, kSmapsBytes);
  const uint64_t locked = BytesOf("\nVmLck:", status);
  if (BytesOf("\nVmPin:", status) != 0) return false;
  bool all = true;
  uint64_t locked_mappings = 0;
  const long read = WithDescriptor([&] {
    return ReadOwnProc("smaps", [&](const char* path) {
      SmapsFlags flags;
      size_ = 0;
      const long bytes = ForEachLine(path, buffer, [&](std::string_view line) {
        const SmapsFlags::What what = flags.Take(line);
        if (what == SmapsFlags::kNeither || IsOurs(job, flags.begin(), flags.end())) return;
        const bool has_room = what == SmapsFlags::kPlain && size_ < kMost;
        if (has_room) ranges_[size_++] = {flags.begin(), flags.end()};
        all &= has_room;
      });
      locked_mappings = flags.locked_bytes();
      return bytes;
    });
  });
  if (read > 0 && locked <= locked_mappings) return all;
  size_ = 0;
  return false;
}

bool KeptFromForks::Lend(ScanJob& job) {
  if (!CopiesPinnedPages() || job.own_count == ScanJob::kMostOwn) return false;
  constexpr size_t kListBytes = kMost * sizeof(OwnRange);
  ranges_ = static_cast<OwnRange*>(OwnMap(kListBytes, /*touch=*/false));
  if (ranges_ == nullptr) return false;
  // It has addresses of memory, and is no root.
  const auto list = reinterpret_cast<uintptr_t>(ranges_);
  job.own[job.own_count++] = {list, list + kListBytes};
  auto* const buffer = static_cast<char*>(OwnMap(kSmapsBytes, /*touch=*/false));
  if (buffer == nullptr) return false;
  const bool all = Find(job, buffer);
  OwnUnmap(buffer, kSmapsBytes);
  // Not while the mappings are read, of which it makes others.
  const size_t found = size_;
  size_ = 0;
  for (size_t i = 0; i < found; ++i) {
    if (Advise(ranges_[i], MADV_DOFORK)) ranges_[size_++] = ranges_[i];
  }
  return all && size_ == found;
}

void KeptFromForks::GiveBack() {
  for (size_t i = 0; i < size_; ++i) Advise(ranges_[i], MADV_DONTFORK);
  size_ = 0;
}

KeptFromForks::~KeptFromForks() {
  GiveBack();
  if (ranges_ != nullptr) OwnUnmap(ranges_, kMost * sizeof(OwnRange));
}

}  // namespace memtrace
