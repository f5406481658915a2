// Where libmemtrace.so is, seen from the memtrace executable: bin/ and lib/ lie
// side by side in a build tree, an installation and a copied directory.

#ifndef MEMTRACE_REPORT_RUN_LIBRARY_FINDER_H_
#define MEMTRACE_REPORT_RUN_LIBRARY_FINDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "report/run/elf_facts.h"

namespace memtrace::report {

struct PreloadLibrary {
  std::string path;  // absolute, and such that ld.so takes it from LD_PRELOAD
  ElfFacts facts;
};

// `given` is the value of --library, or empty.
absl::StatusOr<PreloadLibrary> FindPreloadLibrary(const std::string& given);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_LIBRARY_FINDER_H_
