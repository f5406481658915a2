// KernelFiles: what the kernel tells in /proc and /sys/fs/cgroup, as text.
//
// Such files have no size, are made when they are read and may vanish or be refused
// at any moment: a container may hide them, a process may end. Each read is
// bounded. Tests give another root directory, with files that were recorded.
//
// Any thread; no state but the root.

#ifndef MEMTRACE_REPORT_PRESSURE_KERNEL_FILES_H_
#define MEMTRACE_REPORT_PRESSURE_KERNEL_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace memtrace::report::pressure {

class KernelFiles {
 public:
  // The largest that is read here: memory.stat and vmstat have a few KiB.
  static constexpr size_t kLongest = 256 << 10;

  explicit KernelFiles(std::string root = "") : root_(std::move(root)) {}

  // `path` is absolute: "/proc/vmstat". Errors carry the errno's text alone.
  absl::StatusOr<std::string> Read(absl::string_view path) const;
  bool Exists(absl::string_view path) const;
  // The names in a directory, without . and ..; empty when it cannot be read.
  std::vector<std::string> List(absl::string_view directory) const;
  // The ids of all processes that can be seen, the smallest first.
  std::vector<uint32_t> Pids() const;

 private:
  std::string root_;
};

// "/proc/4711/status"
std::string ProcPath(uint32_t pid, absl::string_view file);

// The number behind `name` at the start of a line: of "RssAnon:  12 kB" by "RssAnon:", of
// "pswpin 12" by "pswpin". kB, which stands for 1024 bytes there, is multiplied out.
std::optional<uint64_t> NumberAfter(absl::string_view text, absl::string_view name);

// A file that is one number. "max" and what is no number: not known.
std::optional<uint64_t> OnlyNumber(absl::string_view text);

// total= of the line that begins with `kind` ("some", "full"), in us, of a pressure file.
std::optional<uint64_t> StallTotal(absl::string_view text, absl::string_view kind);

}  // namespace memtrace::report::pressure

#endif  // MEMTRACE_REPORT_PRESSURE_KERNEL_FILES_H_
