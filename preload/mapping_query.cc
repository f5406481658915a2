#include "preload/mapping_query.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <atomic>

#include "preload/descriptor_table.h"
#include "preload/own_memory.h"
#include "preload/own_proc.h"
#include "preload/proc_text.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"

namespace memtrace {

namespace {

// PROCMAP_QUERY of linux/fs.h, Linux 6.11: what the kernel knows of one mapping,
// without the text of all.
struct MappingQuery {
  uint64_t size = sizeof(MappingQuery);
  uint64_t flags = 0;  // the mapping that has the address
  uint64_t address = 0;
  uint64_t start = 0, end = 0, mapping_flags = 0, page_size = 0, offset = 0, inode = 0;
  uint32_t device_major = 0, device_minor = 0;
  // Room, then what there is; of the name with its zero.
  uint32_t name_bytes = 0, build_id_bytes = 0;
  uint64_t name = 0, build_id = 0;              // where they go
};
constexpr unsigned long kProcmapQuery = _IOWR('f', 17, MappingQuery);
constinit std::atomic<bool> g_no_mapping_query{false};  // the kernel has none

// False: not told.
bool Query(MappingQuery* query) {
  if (g_no_mapping_query.load(std::memory_order_relaxed)) return false;
  const uint64_t start = query->address;
  const long told = ReadOwnProc("maps", [&](const char* file) -> long {
    const long fd = sys::OpenBriefly(file);
    if (sys::Failed(fd)) return fd;
    const long result = sys::Call(SYS_ioctl, fd, kProcmapQuery, reinterpret_cast<long>(query));
    sys::Close(fd);
    if (result == -ENOTTY) g_no_mapping_query.store(true, std::memory_order_relaxed);
    return sys::Failed(result) ? result : 1;
  });
  return told > 0 && query->start == start;
}

// False: not told. The name is followed by a zero in `memory`, of so many bytes.
bool QueryNameOfMapping(uintptr_t start, char* memory, size_t bytes, Text<8192>& path) {
  MappingQuery query;
  query.address = start;
  query.name = reinterpret_cast<uintptr_t>(memory);
  query.name_bytes = static_cast<uint32_t>(bytes);
  if (!Query(&query) || query.name_bytes < 2 || query.name_bytes > bytes || memory[0] != '/') {
    return false;
  }
  path << std::string_view(memory, query.name_bytes - 1);
  return !path.cut();
}

}  // namespace

bool NameOfMapping(uintptr_t start, Text<8192>& path) {
  constexpr size_t kMost = 4 << 20;  // of which is touched what there is
  const SignalsBlocked calls;
  auto* const maps = calls ? static_cast<char*>(OwnMap(kMost, /*touch=*/false)) : nullptr;
  if (maps == nullptr) return false;
  if (QueryNameOfMapping(start, maps, 4096, path)) {
    OwnUnmap(maps, kMost);
    return true;
  }
  const long bytes =
      ReadOwnProc("maps", [&](const char* file) { return ReadFile(file, maps, kMost); });
  std::string_view rest(maps, bytes > 0 ? static_cast<size_t>(bytes) : 0), line;
  rest = First(rest, rest.rfind('\n') + 1);  // npos + 1 is 0; a part of a line is none
  bool found = false;
  while (!found && TakeLine(rest, &line)) {
    MapLine map;
    if (!ParseMapLine(line, &map) || map.begin != start) continue;
    if (!map.path.starts_with('/')) break;
    path << map.path;
    found = !path.cut();
  }
  OwnUnmap(maps, kMost);
  return found;
}

std::string_view BuildIdOfMapping(uintptr_t start, char* memory, size_t bytes) {
  const SignalsBlocked calls;
  if (!calls) return {};
  MappingQuery query;
  query.address = start;
  query.build_id = reinterpret_cast<uintptr_t>(memory);
  query.build_id_bytes = static_cast<uint32_t>(bytes);
  if (!Query(&query) || query.build_id_bytes > bytes) return {};
  return {memory, query.build_id_bytes};
}

}  // namespace memtrace
