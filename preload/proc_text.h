// What stands in texts of /proc: a line of maps, a field of stat, a figure of status. The texts are
// the kernel's; what is read of them is in parts of the same text.

#ifndef MEMTRACE_PRELOAD_PROC_TEXT_H_
#define MEMTRACE_PRELOAD_PROC_TEXT_H_

#include <cstdint>
#include <string_view>

namespace memtrace {

// A mapping in /proc/PID/maps: "7f12a000-7f12b000 rw-p 00003000 fe:01 1234   /usr/lib/x.so".
struct MapLine {
  uint64_t begin = 0, end = 0;
  std::string_view permissions;  // four letters
  uint64_t offset = 0, inode = 0;
  std::string_view path;  // "", "[heap]", "/usr/lib/x (deleted)"
};

// `line` is without its end. False: it is no such line, as those that smaps has below each of them.
bool ParseMapLine(std::string_view line, MapLine* map);

// The number in a field of the text of a /proc/PID/stat, from the third on; proc(5) counts from 1.
// 0: it has not as many.
uint64_t StatNumber(std::string_view stat, int field);

// The figure behind `name` in the text of a /proc/PID/status, "VmLck:\t      12 kB", in KiB. False:
// the name is not there.
bool StatusKb(std::string_view status, std::string_view name, uint64_t* kb);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_PROC_TEXT_H_
