// Config: the MEMTRACE_* variables, read once, before the first event.
//
// From /proc/self/environ rather than getenv: the first event may come before
// libc has set `environ`, and the program may change its environment later. A
// wrong value costs one line on standard error and leaves the default.

#ifndef MEMTRACE_PRELOAD_CONFIG_H_
#define MEMTRACE_PRELOAD_CONFIG_H_

#include <cstdint>
#include <string_view>

#include "preload/text.h"

namespace memtrace {

// When memory is scanned without being asked: before the program's exit handlers and
// destructors, after them.
struct LeakCheck {
  bool early = false;
  bool late = true;
};

// MEMTRACE_FAULTS: how page faults are found out. kUser: by events of user code only, as an
// ordinary user may; kAuto: of the kernel's too, where they are permitted; kSnapshots: no events.
enum class FaultMode : uint8_t { kOff, kAuto, kUser, kSnapshots };

struct Config {
  Text<4096> out;          // MEMTRACE_OUT
  bool stacks = true;      // MEMTRACE_STACKS
  bool free_stacks = false;  // MEMTRACE_FREE_STACKS
  bool children = true;    // MEMTRACE_CHILDREN
  bool join = true;        // MEMTRACE_JOIN
  uint64_t max_bytes = 0;  // MEMTRACE_MAX_BYTES; 0: no limit of ours
  bool glibc_has_huge_heaps = false;  // GLIBC_TUNABLES: glibc.malloc.hugetlb above 1
  bool keep_newest = false;  // MEMTRACE_KEEP; then max_bytes is at least Segments::kSmallestFile
  uint64_t sample_bytes = 0;  // MEMTRACE_SAMPLE_BYTES; 0: every allocation
  uint64_t sample_seed = 0;   // MEMTRACE_SAMPLE_SEED; 0: another one in each process
  LeakCheck leak_check;  // MEMTRACE_LEAK_CHECK
  uint32_t leak_signal = 0;  // MEMTRACE_LEAK_SIGNAL; 0: none
  FaultMode faults = FaultMode::kOff;  // MEMTRACE_FAULTS
  uint32_t cross_check = 0;  // MEMTRACE_CROSS_CHECK: every cross_check-th stack; 0: none
  Text<4096> gconv_path;   // GCONV_PATH, which is glibc's: directories of character sets

  // All stacks, by memo and join, unchecked: the one question of the event path.
  bool usual_stacks = true;

  // `environment` is NAME=VALUE, each ended by NUL. A wrong value is said if may_say()
  // does not forbid it.
  void Parse(std::string_view environment, bool (*may_say)() = nullptr);
  // The same of pointers to the entries, the last of which is null.
  void Parse(const char* const* environment, bool (*may_say)());
};

// "4096", "64K", "1.5M", "2GiB", "1 tb" -> bytes, as the options of memtrace take a size
// (report/base/byte_size.h). False when it is none.
bool ParseBytes(std::string_view text, uint64_t* bytes);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_CONFIG_H_
