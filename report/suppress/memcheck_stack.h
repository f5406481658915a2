// MemcheckStack: a stack of ours as memcheck would see it, for what is matched against it.
//
// memcheck stands in for malloc, calloc and so on and for operator new as well; we stand in
// for malloc alone and see operator new as a caller. So
//   - the innermost frame is the function that allocated: malloc, calloc, ... with the file
//     memcheck has it in, and where operator new called that, operator new in its place;
//   - operator new[] of libstdc++ jumps into operator new and is not on the stack: the frame
//     has both names;
//   - realloc has the name malloc as well, to which memcheck's jumps when it is given nothing;
//   - the two names of a constructor, and those of aligned allocation, stand for each other;
//   - inlined functions have the name without scope as well, and clone3 that of clone; of template
//     arguments, which Valgrind has as the debug information writes them, nothing counts there;
//   - what runs main and static constructors is "(below main)" and "__libc_start_main" as well;
//   - an end that could not be followed is no frame.
//
// One thread. Texts refer to the frames, which outlive the stack.

#ifndef MEMTRACE_REPORT_SUPPRESS_MEMCHECK_STACK_H_
#define MEMTRACE_REPORT_SUPPRESS_MEMCHECK_STACK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "format/event_words.h"
#include "report/names/frame.h"

namespace memtrace::report::suppress {

struct MemcheckFrame {
  std::vector<std::string> functions;  // mangled and not; "???" where it has no name
  std::string module;                  // "???" where it is not known
  std::string real_module;  // without links, where the file is here; else the same or empty
  std::string file;                    // empty: not known
  uint32_t line = 0;
  bool inlined = false;
  std::string bare;                    // of an inlined one: without scope and template arguments
  bool below_main = false;  // "(below main)" as well: Valgrind's word and no function's name
};

struct MemcheckStack {
  std::vector<MemcheckFrame> frames;  // innermost first
  // The stack may as well begin here: the frames before it are not always there.
  size_t also_begins = 0;
};

MemcheckStack AsMemcheckSees(format::AllocFunction function,
                             absl::Span<const Frame* const> frames);

// The stack of a free: `called` is what the program called, "free" or "_ZdlPvm", which
// memcheck stands in for too.
MemcheckStack AsMemcheckSeesFree(absl::string_view called, absl::Span<const Frame* const> frames);

// A suppression in Valgrind's form that matches this stack, here and in memcheck; `kind` is
// the name of a leak kind, or empty for all. Inlined frames and those that memcheck may see
// differently are "...".
std::string SuppressionFor(absl::string_view name, absl::string_view kind,
                           format::AllocFunction function, absl::Span<const Frame* const> frames);
// The same of a free, of kind Memcheck:Free.
std::string SuppressionForFree(absl::string_view name, absl::string_view called,
                               absl::Span<const Frame* const> frames);

}  // namespace memtrace::report::suppress

#endif  // MEMTRACE_REPORT_SUPPRESS_MEMCHECK_STACK_H_
