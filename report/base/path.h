// Paths as texts, of a trace or a command line: nothing is looked up.

#ifndef MEMTRACE_REPORT_BASE_PATH_H_
#define MEMTRACE_REPORT_BASE_PATH_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace memtrace::report {

// The last component: "libc.so.6" of "/lib/libc.so.6"; of a path that ends in '/' nothing.
inline absl::string_view FileNameOf(absl::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// The directory as open() understands it: "." for "a", "/" for "/a".
inline std::string DirectoryOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_PATH_H_
