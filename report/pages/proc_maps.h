// The mappings of a process, as /proc/PID/smaps tells them: one pass, one mapping at a time
// in memory of the kernel's text. /proc/PID/maps has the same heads without figures.
//
// The text is the kernel's, but names in it are anybody's: a line end in a file name is
// written \012 there, and " (deleted)" may be part of a name.

#ifndef MEMTRACE_REPORT_PAGES_PROC_MAPS_H_
#define MEMTRACE_REPORT_PAGES_PROC_MAPS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace memtrace::report::pages {

struct Mapping {
  uint64_t start = 0, end = 0;
  bool readable = false, writable = false, executable = false, shared = false;
  uint64_t offset = 0;
  std::string device;  // "fe:01"
  uint64_t inode = 0;
  std::string name;    // as the kernel writes it, with \ooo taken back; may be empty
  bool deleted = false;

  // Bytes; 0 where only maps could be read (`measured` is false then).
  bool measured = false;
  uint64_t rss = 0, pss = 0, shared_clean = 0, shared_dirty = 0, private_clean = 0,
           private_dirty = 0, anonymous = 0, swap = 0;
  uint64_t huge = 0;        // anonymous, shmem and file pages that are mapped as huge ones
  uint64_t hugetlb = 0;     // of hugetlbfs: not in rss

  // "rw-p": four letters, as in maps.
  void SetPermissions(std::string_view permissions) {
    readable = permissions[0] == 'r';
    writable = permissions[1] == 'w';
    executable = permissions[2] == 'x';
    shared = permissions[3] == 's';
  }
  uint64_t bytes() const { return end - start; }
  bool of_file() const { return inode != 0; }
};

// Reads the text in pieces of any size.
class MapsParser {
 public:
  explicit MapsParser(std::function<void(Mapping&&)> take) : take_(std::move(take)) {}
  void Feed(absl::string_view piece);
  void Finish();

 private:
  void Line(absl::string_view line);

  const std::function<void(Mapping&&)> take_;
  std::string rest_;  // a line that is not complete
  Mapping mapping_;
  bool any_ = false;
};

// `file`: "/proc/4711/smaps". NotFound: the process has ended; PermissionDenied.
absl::Status ReadMaps(const std::string& file, std::vector<Mapping>* mappings);

}  // namespace memtrace::report::pages

#endif  // MEMTRACE_REPORT_PAGES_PROC_MAPS_H_
