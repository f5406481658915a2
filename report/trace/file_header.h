// The FileHeader of a trace: read and judged. Each way in which a file can fail
// to be a trace that we can read has its own sentence.

#ifndef MEMTRACE_REPORT_TRACE_FILE_HEADER_H_
#define MEMTRACE_REPORT_TRACE_FILE_HEADER_H_

#include <string>

#include "absl/status/statusor.h"
#include "format/trace_format.h"
#include "report/trace/byte_source.h"

namespace memtrace::report {

// The messages continue the name of the file: "x.mtr is empty: ...".
absl::StatusOr<format::FileHeader> ReadFileHeader(const ByteSource& source);

// Whether the file begins as a trace does; looks at the first bytes only.
bool BeginsAsATrace(const std::string& path);

// The message about a file that has a header and nothing else. It is for a reader that was given a
// whole file, and not one that may still grow.
inline constexpr char kNothingBehindTheHeader[] =
    "has nothing behind its header: it was cut there, or the program was killed as it started; "
    "trace it again";

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_FILE_HEADER_H_
