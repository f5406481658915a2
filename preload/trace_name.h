// What a trace's file is called: MEMTRACE_OUT with its % filled in, within it where it is a
// directory, and with a number where there is a file of that name.
//
// Async-signal-safe; no thread may use a TraceName while another does.

#ifndef MEMTRACE_PRELOAD_TRACE_NAME_H_
#define MEMTRACE_PRELOAD_TRACE_NAME_H_

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "preload/text.h"

namespace memtrace {

inline constexpr char kDefaultTraceName[] = "memtrace.%e.%p.mtr";

class TraceName {
 public:
  // The values of %e, %p and %t, and the directory that a relative name begins in.
  struct Values {
    const char* working_directory;
    std::string_view program;
    int pid;
    uint64_t start_ns;  // CLOCK_REALTIME, as in the names of `memtrace run`
  };

  void Set(const char* pattern, const Values& values);
  void Clear() { path_.Clear(); }

  // A new file of this name, or of one with a number, for reading and writing: its descriptor, or
  // -errno; -EMEDIUMTYPE where a device or a pipe has the name. Nothing that exists is opened, and
  // no link followed.
  long CreateFile(const Values& values);

  const char* c_str() const { return path_.c_str(); }

 private:
  using Path = Text<4352>;

  void Append(const char* pattern, const Values& values);
  mode_t ModeBehindLinks() const;  // 0: there is nothing
  long Create() const;
  long CreateNumbered();
  // path_ becomes `wanted` with `number` before its extension.
  void Number(std::string_view wanted, uint64_t number);
  uint64_t LastNumberInUse(std::string_view wanted, uint64_t in_use);
  bool Exists();

  Path path_;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_TRACE_NAME_H_
