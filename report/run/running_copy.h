// CopyRunningFile: a copy of a raw trace that its writer goes on writing.
//
// A file is not copied in an instant. The copy has, of each thread, all that was
// written before the copy was begun, and what is in it of later events is without holes: nothing is
// missing or torn in it that was whole in the file.
//
// One thread. Errors: the file cannot be read, the copy not be written.

#ifndef MEMTRACE_REPORT_RUN_RUNNING_COPY_H_
#define MEMTRACE_REPORT_RUN_RUNNING_COPY_H_

#include <string>

#include "absl/status/status.h"

namespace memtrace::report {

// `in`: open for reading, `out`: an empty file that is open for both. The names are for messages.
absl::Status CopyRunningFile(int in, const std::string& from, int out, const std::string& to);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_RUNNING_COPY_H_
