#include "preload/leak_scan/userfault.h"

#include <cstdint>
#include <cstring>
#include <string_view>

#include "preload/descriptor_table.h"
#include "preload/own_proc.h"
#include "preload/sys.h"

namespace memtrace {
namespace {

// 1 or 2, if there is one; 0: there are no descriptors, not even `directory`.
long LookIn(long directory) {
  constexpr std::string_view kIs = "anon_inode:[userfaultfd]";
  // Struct linux_dirent64: inode and offset of 8 bytes, length of 2, type of 1.
  constexpr long kNameAt = 19;
  // If there are more descriptors than this, a look at each takes longer than a copy may save.
  constexpr int kMostLookedAt = 65536;
  int looked_at = 0;
  alignas(8) char entries[2048];
  for (;;) {
    const long bytes =
        sys::Call(SYS_getdents64, directory, reinterpret_cast<long>(entries), sizeof(entries));
    if (bytes <= 0) return looked_at > 2 ? 1 : 0;  // "." and ".."
    for (long at = 0; at < bytes;) {
      const char* const entry = entries + at;
      uint16_t length;
      memcpy(&length, entry + 16, sizeof(length));
      at += length;
      if (++looked_at > kMostLookedAt) return 2;
      char target[kIs.size() + 1];
      const long size =
          sys::Call(SYS_readlinkat, directory, reinterpret_cast<long>(entry + kNameAt),
                    reinterpret_cast<long>(target), sizeof(target));
      if (size > 0 && std::string_view(target, static_cast<size_t>(size)) == kIs) return 2;
    }
  }
}

}  // namespace

bool HasUserfaultfd() {
  const long found = ReadOwnProc("fd", [](const char* path) {
    return WithDescriptor([path] {
      const long directory = sys::OpenBriefly(path, O_DIRECTORY);
      if (sys::Failed(directory)) return directory;
      const long found = LookIn(directory);
      sys::Close(directory);
      return found;
    });
  });
  return found == 2;
}

}  // namespace memtrace
