#include "preload/own_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "preload/descriptor_table.h"
#include "preload/sys.h"

namespace memtrace {

ProcNumbers WhoseNumbersInProc() {
  char link[16];
  const long bytes = sys::Readlink("/proc/self", link, sizeof(link));
  if (bytes > 0) {
    std::string_view number(link, static_cast<size_t>(bytes));
    const bool is_ours = TakeNumber(number, 10) == static_cast<uint64_t>(sys::Getpid());
    return is_ours ? ProcNumbers::kOurs : ProcNumbers::kOfOuterNamespace;
  }
  struct stat self;
  const bool leads_nowhere =
      bytes == -ENOENT && !sys::Failed(sys::Stat("/proc/self", &self, AT_SYMLINK_NOFOLLOW));
  return leads_nowhere ? ProcNumbers::kOfOtherNamespace : ProcNumbers::kNotThere;
}

std::string_view ReadOwnStatus(char* buffer, size_t capacity) {
  const long bytes = ReadOwnProc("status", [&](const char* path) {
    const long read = ReadFile(path, buffer, capacity);
    const std::string_view text(buffer, read > 0 ? static_cast<size_t>(read) : 0);
    return text.find("\nVm") == text.npos ? 0L : read;
  });
  return {buffer, bytes > 0 ? static_cast<size_t>(bytes) : 0};
}

long OpenOwnPagemap() {
  // On most kernels the page map of a thread that has ended can be opened, so a read is tried as
  // well. 0 may be a descriptor.
  const long opened = ReadOwnProc("pagemap", [](const char* path) {
    const long fd = sys::OpenBriefly(path);
    if (sys::Failed(fd)) return fd;
    uint64_t entry;
    if (sys::Pread(fd, &entry, sizeof(entry), 0) == sizeof(entry)) return fd + 1;
    sys::Close(fd);
    return long{-ESRCH};
  });
  return opened > 0 ? opened - 1 : opened;
}

}  // namespace memtrace
