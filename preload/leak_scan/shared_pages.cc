#include "preload/leak_scan/shared_pages.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "preload/leak_scan/scan_words.h"
#include "preload/own_proc.h"
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

long OpenFileOf(const ScanMapping& mapping, int flags) {
  Text<80> path;
  path << "/proc/self/map_files/" << Hex(mapping.begin).view() << "-" << Hex(mapping.end).view();
  return sys::Open(path.c_str(), flags);
}

// Opens the file of a mapping, if it is memory: to open another file may be noticed, or wait for
// the process that serves it. Not everybody may open what is mapped (CAP_CHECKPOINT_RESTORE).
long OpenMapped(const ScanMapping& mapping) {
  bool of_memory = false;
  for (const std::string_view begin : {"/memfd:", "/dev/shm/", "/dev/zero (deleted)", "/SYSV"}) {
    of_memory |= mapping.path.starts_with(begin);
  }
  if (!of_memory || !mapping.shared) return -1;
  return OpenFileOf(mapping, O_RDONLY);
}

// Huge pages are refused advice of less than one. A mapping of others loses an entry of its table,
// and has it again when it is read. (A device's is refused, too.)
bool MayBeHuge(const ScanMapping& mapping) {
  constexpr uintptr_t kSmallest = 64 << 10;  // of any architecture
  if (!mapping.shared) return false;
  if ((mapping.begin | mapping.end | mapping.offset) % kSmallest != 0) return false;
  void* const second = reinterpret_cast<void*>(mapping.begin + kPage);
  return sys::Madvise(second, kPage, MADV_DONTNEED) == -EINVAL;
}

// Opens the file of a mapping if it is hugetlbfs's: -ENODEV if it is not, other errors if that is
// not known. `page_bytes`: of a huge page.
long OpenHuge(const ScanMapping& mapping, uint64_t* page_bytes) {
  const long path = OpenFileOf(mapping, O_PATH);  // as yet it may be a device
  if (sys::Failed(path)) return path;
  struct statfs system = {};
  const long result = sys::Call(SYS_fstatfs, path, reinterpret_cast<long>(&system));
  sys::Close(path);
  if (sys::Failed(result)) return result;
  if (system.f_type != HUGETLBFS_MAGIC) return -ENODEV;
  *page_bytes = static_cast<uint64_t>(system.f_bsize);
  return OpenFileOf(mapping, O_RDONLY);
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

// Whether the part of a huge page has a word that is not 0: without one it is of no interest.
// False: there is too much to read.
bool SharedPages::HasContent(long fd, uint64_t offset, size_t pages, uint8_t* state) {
  constexpr uint64_t kCost = 4;  // of a page that is read, in pages that are asked for
  *state = 0;
  for (uint64_t done = 0; done < pages * kPage;) {
    const uint64_t wanted = std::min<uint64_t>(sizeof(piece_), pages * kPage - done);
    if (wanted / kPage * kCost > most_asked_ - asked_) return false;
    asked_ += wanted / kPage * kCost;
    const long got = sys::Pread(fd, piece_, wanted, offset + done);
    if (sys::Failed(got)) *state = kMayNotRead;  // broken memory
    uint64_t* const end = piece_ + (got > 0 ? static_cast<size_t>(got) / kWord : 0);
    if (std::find_if(piece_, end, [](uint64_t word) { return word != 0; }) != end) *state = 1;
    if (*state != 0 || got <= 0) break;
    done += static_cast<uint64_t>(got);
  }
  return true;
}

// What is in the tables of the process that this is a copy of. It may have given up the memory
// since, and be a fork child that has not touched what its parent did: so the rest is not known.
void SharedPages::AskProcess(uintptr_t begin, size_t pages, uint8_t* resident) {
  constexpr uint64_t kPresent = uint64_t{1} << 63;
  memset(resident, kMayNotRead, pages);
  if (WhoseNumbersInProc() != ProcNumbers::kOurs) return;
  Text<48> path;
  path << "/proc/" << sys::Getppid() << "/pagemap";
  const long fd = sys::Open(path.c_str(), O_RDONLY);
  if (sys::Failed(fd)) return;
  for (size_t done = 0; done < pages;) {
    const size_t wanted = std::min(pages - done, sizeof(piece_) / kWord);
    const long got = sys::Pread(fd, piece_, wanted * kWord, (begin / kPage + done) * kWord);
    if (got < static_cast<long>(kWord)) break;
    for (size_t i = 0; i < static_cast<size_t>(got) / kWord; ++i) {
      if ((piece_[i] & kPresent) != 0) resident[done + i] = 1;
    }
    done += static_cast<size_t>(got) / kWord;
  }
  sys::Close(fd);
}

bool SharedPages::FindHuge(const ScanMapping& mapping, uintptr_t begin, size_t pages,
                           uint8_t* resident) {
  uint64_t page_bytes = 0;
  const long fd = OpenHuge(mapping, &page_bytes);
  if (sys::Failed(fd)) {
    if (fd == -ENODEV || !in_copy_) return Ask(begin, pages, resident);
    AskProcess(begin, pages, resident);
    return true;
  }
  const uint64_t first = mapping.offset + (begin - mapping.begin);
  bool found = true;
  for (size_t done = 0; done < pages && found;) {
    const uint64_t at = first + done * kPage;
    const size_t part = std::min<size_t>(pages - done, (page_bytes - at % page_bytes) / kPage);
    uint8_t state;
    found = HasContent(fd, at, part, &state);
    memset(resident + done, state, part);
    done += part;
  }
  sys::Close(fd);
  return found;
}

bool SharedPages::Find(const ScanMapping& mapping, uintptr_t begin, size_t pages,
                       uint8_t* resident) {
  if (MayBeHuge(mapping)) return FindHuge(mapping, begin, pages, resident);
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
