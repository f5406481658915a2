// The build-id of the running executable: what an earlier build of it has stored, this one
// does not take for its own.

#ifndef MEMTRACE_SYMBOLIZER_OWN_BUILD_H_
#define MEMTRACE_SYMBOLIZER_OWN_BUILD_H_

#include <string>

namespace memtrace::symbolizer {

// Raw bytes; empty: it was linked without one.
const std::string& OwnBuildId();

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_OWN_BUILD_H_
