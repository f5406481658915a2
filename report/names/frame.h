// Frame: a symbolized step of a stack, as every format of the report shows it.

#ifndef MEMTRACE_REPORT_NAMES_FRAME_H_
#define MEMTRACE_REPORT_NAMES_FRAME_H_

#include <cstdint>
#include <string>

namespace memtrace::report {

// What a frame is to the reader of a report.
enum class FrameRole : uint8_t {
  kProject,    // the program and its own libraries
  kSystem,     // a library of the system: libc, libstdc++, what lies in /usr/lib
  kAllocator,  // allocates on behalf of its caller: operator new, std::vector, xmalloc
  kStart,      // what runs main or a thread's function: libc's code for that
  kInvoker,    // between libc's thread start and the function given to std::thread
  kMarker,     // not a frame: why the stack ends here
};

struct Frame {
  std::string function;  // demangled; empty: not known. kMarker: the text in brackets
  std::string linkage_name;  // mangled, where that is another name than `function`; else empty
  std::string module;    // path; empty: not known
  uint64_t offset = 0;   // in the module: pc minus load bias; without a module the pc
  std::string file;      // empty: not known
  uint32_t line = 0;     // 0: not known
  bool inlined = false;  // into the next frame
  FrameRole role = FrameRole::kProject;
  // Equal for frames that a reader cannot tell apart: the same function, module,
  // file and line; where the function is not known, the same module and offset.
  uint32_t identity = 0;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_NAMES_FRAME_H_
