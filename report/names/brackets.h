// Closing(): which bracket closes which in the name of a function.
//
// Pure, any thread; any text.

#ifndef MEMTRACE_REPORT_NAMES_BRACKETS_H_
#define MEMTRACE_REPORT_NAMES_BRACKETS_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace memtrace::report {

// The position of the bracket that closes the one at text[open], which is ( { [ or <; npos: none
// does. The '>' of an arrow closes nothing, nor does a comparison within brackets of another kind.
size_t Closing(absl::string_view text, size_t open);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_NAMES_BRACKETS_H_
