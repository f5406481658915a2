#include "preload/leak_scan/userfault.h"

#include <cstdint>
#include <cstring>
#include <string_view>

#include "preload/descriptor_table.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

bool HasUserfaultfdIn(long directory) {
  constexpr std::string_view kIs = "anon_inode:[userfaultfd]";
  constexpr long kNameAt = 19;  // struct linux_dirent64: inode and offset of 8 bytes, length of 2, type of 1
  // Of more descriptors than that a look at each takes longer than a copy may save.
  constexpr int kMostLookedAt = 65536;
  int looked_at = 0;
  alignas(8) char entries[2048];
  for (;;) {
    const long bytes =
        sys::Call(SYS_getdents64, directory, reinterpret_cast<long>(entries), sizeof(entries));
    if (bytes <= 0) return false;
    for (long at = 0; at < bytes;) {
      const char* const entry = entries + at;
      uint16_t length;
      memcpy(&length, entry + 16, sizeof(length));
      at += length;
      if (++looked_at > kMostLookedAt) return true;
      char target[kIs.size() + 1];
      const long size = sys::Call(SYS_readlinkat, directory, reinterpret_cast<long>(entry + kNameAt),
                                  reinterpret_cast<long>(target), sizeof(target));
      if (size > 0 && std::string_view(target, static_cast<size_t>(size)) == kIs) return true;
    }
  }
}

}  // namespace

bool HasUserfaultfd() {
  // Not /proc/self: the first thread may have ended, and has none then.
  const long has = WithDescriptor([] {
    const long directory = sys::Open("/proc/thread-self/fd", O_RDONLY | O_DIRECTORY);
    if (sys::Failed(directory)) return directory;
    const bool found = HasUserfaultfdIn(directory);
    sys::Close(directory);
    return found ? 1L : 0L;
  });
  return has == 1;
}

}  // namespace memtrace
