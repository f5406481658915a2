#include "preload/leak_scan/shared_pages.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "preload/leak_scan/scan_words.h"
#include "preload/sys.h"
#include "preload/text.h"

namespace memtrace {
namespace {

// Smaller mappings are asked about page by page: opening a file takes time as well.
constexpr size_t kLeastOpened = 16 << 10;  // pages
constexpr size_t kStride = 64;             // as finely as data is told from none

Text<17> Hex(uint64_t value) {
  Text<17> text;
  int shift = 60;
  while (shift > 0 && value >> shift == 0) shift -= 4;
  for (; shift >= 0; shift -= 4)
    text << std::string_view(&"0123456789abcdef"[value >> shift & 15], 1);
  return text;
}

// Opens the file of a mapping, if it is memory: to open another file may be noticed, or wait for
// the process that serves it. Not everybody may open what is mapped (CAP_CHECKPOINT_RESTORE).
long OpenMapped(const ScanMapping& mapping) {
  bool of_memory = false;
  for (const std::string_view begin : {"/memfd:", "/dev/shm/", "/dev/zero (deleted)", "/SYSV"}) {
    of_memory |= mapping.path.starts_with(begin);
  }
  if (!of_memory || !mapping.shared) return -1;
  Text<80> path;
  path << "/proc/self/map_files/" << Hex(mapping.begin).view() << "-" << Hex(mapping.end).view();
  return sys::Open(path.c_str(), O_RDONLY);
}

long Seek(long fd, uint64_t offset, int whence) {
  return sys::Call(SYS_lseek, fd, static_cast<long>(offset), whence);
}

}  // namespace

bool SharedPages::Ask(uintptr_t begin, size_t pages, uint8_t* resident) {
  if (pages > most_asked_ - asked_) return false;
  asked_ += pages;
  if (sys::Failed(sys::Call(SYS_mincore, static_cast<long>(begin), static_cast<long>(pages * kPage),
                            reinterpret_cast<long>(resident)))) {
    memset(resident, 1, pages);
  }
  return true;
}

bool SharedPages::Find(const ScanMapping& mapping, uintptr_t begin, size_t pages,
                       uint8_t* resident) {
  const long fd = pages >= kLeastOpened ? OpenMapped(mapping) : -1;
  if (sys::Failed(fd)) return Ask(begin, pages, resident);
  memset(resident, 0, pages);
  const uint64_t first = mapping.offset + (begin - mapping.begin);
  bool found = true;
  for (size_t done = 0; done < pages && found;) {
    const long data = Seek(fd, first + done * kPage, SEEK_DATA);
    if (sys::Failed(data)) {
      // Behind it there is none; or it cannot tell.
      if (data != -ENXIO) found = Ask(begin + done * kPage, pages - done, resident + done);
      break;
    }
    const size_t from = (static_cast<uint64_t>(data) - first) / kPage;
    if (from >= pages) break;
    const long hole = Seek(fd, static_cast<uint64_t>(data), SEEK_HOLE);
    size_t to = sys::Failed(hole) ? pages : Up(static_cast<uint64_t>(hole) - first, kPage) / kPage;
    to = Up(to > from ? to : from + 1, kStride);
    if (to > pages) to = pages;
    found = Ask(begin + from * kPage, to - from, resident + from);
    done = to;
  }
  sys::Close(fd);
  return found;
}

}  // namespace memtrace
