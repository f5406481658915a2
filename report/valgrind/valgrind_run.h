// ValgrindRun: what memcheck wrote about a run with --xml=yes, as values.
//
// Protocols 4 to 6 are read. The file may be from anybody and may end anywhere: sizes and
// counts are bounded, everything before damage is kept, and `damage` says where it is.
//
// Pure functions; any thread.

#ifndef MEMTRACE_REPORT_VALGRIND_VALGRIND_RUN_H_
#define MEMTRACE_REPORT_VALGRIND_VALGRIND_RUN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/leak/leak_kinds.h"
#include "report/render/valgrind_losses.h"

namespace memtrace::report::valgrind {

struct ValgrindRun {
  uint32_t protocol = 0;
  std::string version;  // "Valgrind-3.19.0 and LibVEX"; empty: not said
  uint32_t pid = 0;
  std::vector<std::string> options;  // Valgrind's own, of all sources
  std::vector<std::string> command;  // the program's
  // Since its start, at the end of the program; none: it had not ended.
  std::optional<uint64_t> duration_ns;

  std::vector<render::Loss> losses;  // in the order of the file
  uint64_t other_errors = 0;         // that are not leaks
  // Used ones, and how often: over all kinds.
  std::vector<std::pair<std::string, uint64_t>> suppressions;

  // Protocol 6 alone.
  struct Heap {
    uint64_t allocations = 0, frees = 0, bytes_allocated = 0;
    uint64_t live_bytes = 0, live_blocks = 0;
  };
  std::optional<Heap> heap;

  std::string damage;              // empty: the file is whole
  std::vector<std::string> notes;  // what else a reader should know

  // What the options of that run ask for.
  size_t callers = 12;
  render::LeakResolution resolution = render::LeakResolution::kHigh;
  LeakKindSet shown = LeakKindSet::Default();
  bool frees_libc = true;  // --run-libc-freeres, --run-cxx-freeres
  bool frees_cxx = true;
};

struct ValgrindXmlLimits {
  size_t bytes = size_t{512} << 20;
  size_t losses = 1'000'000;
  size_t frames = 2000;  // of a stack; 500 callers is what Valgrind takes, inlined ones on top
  size_t text_bytes = 8192;
};

// InvalidArgument: it is no XML of memcheck's, or too large.
absl::StatusOr<ValgrindRun> ParseValgrindXml(absl::string_view text,
                                             const ValgrindXmlLimits& limits = {});
// The same of a file; messages begin with its path.
absl::StatusOr<ValgrindRun> ReadValgrindXml(const std::string& path);

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_VALGRIND_RUN_H_
