// Outputs that are refused before anything is written, because they would destroy something or be
// of no use. The messages say what to do instead.

#ifndef MEMTRACE_REPORT_CLI_REFUSALS_H_
#define MEMTRACE_REPORT_CLI_REFUSALS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace memtrace::report {

// An error where the file to write is one that is read, which a report, a dump or half of its
// packed self would replace. `what` it is, for the message.
absl::Status RefuseToReplace(const std::string& read, const std::string& output,
                             absl::string_view what = "the trace itself");
// An error where a page, or what is no text, would go to a terminal.
absl::Status RefuseTerminal(absl::string_view format, const std::string& output);
// A file of something else is not replaced by a trace.
absl::Status RefuseToReplaceNoTrace(const std::string& output);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_CLI_REFUSALS_H_
