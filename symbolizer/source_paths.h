// SourcePaths: file names of one unit's line table -> paths.
//
// A name that is not absolute is relative to the compilation directory, unless
// it begins with it already (DWARF 5 lists that directory as entry 0; with
// -ffile-prefix-map it is often relative itself: "./malloc"). "//", "/./" and
// "dir/../" are taken out as text, so that one file has one spelling, whatever
// way it was included.

#ifndef MEMTRACE_SYMBOLIZER_SOURCE_PATHS_H_
#define MEMTRACE_SYMBOLIZER_SOURCE_PATHS_H_

#include <elfutils/libdw.h>

#include <string>
#include <string_view>

#include "absl/container/node_hash_map.h"

namespace memtrace::symbolizer {

// "./a//b/../c" -> "./a/c". What leads upwards at the start stays.
std::string CleanPath(std::string_view path);

class SourcePaths {
 public:
  explicit SourcePaths(Dwarf_Die* unit);
  // `name` as libdw returned it: the same pointer again costs one look-up.
  const std::string& Of(const char* name);

 private:
  std::string directory_;  // DW_AT_comp_dir, without a slash at its end
  absl::node_hash_map<const char*, std::string> paths_;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_SOURCE_PATHS_H_
