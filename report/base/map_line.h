// MapLine: a mapping as a line of /proc/PID/maps tells it, and the first of its lines in smaps. Of
// a process that runs, or of a text that was kept.

#ifndef MEMTRACE_REPORT_BASE_MAP_LINE_H_
#define MEMTRACE_REPORT_BASE_MAP_LINE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace memtrace::report {

struct MapLine {
  uint64_t begin = 0, end = 0;
  std::string_view permissions;  // "rw-p"
  uint64_t offset = 0;
  std::string_view device;       // "fe:01"
  uint64_t inode = 0;
  std::string_view name;         // path, "[heap]", "[anon:...]" or empty

  bool anonymous() const { return inode == 0; }
};

// "7f12a000-7f12b000 rw-p 00000000 00:00 0    [anon:name]". False: it is not understood.
bool ParseMapLine(std::string_view text, MapLine* line);

// Calls visit(line) for each line that is understood.
template <typename Visit>
void ForEachMapLine(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    MapLine line;
    if (ParseMapLine(text.substr(0, end), &line)) visit(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::vector<MapLine> LinesOf(std::string_view text);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_MAP_LINE_H_
