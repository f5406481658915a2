// Why something could not be written to a trace, and what helps.

#ifndef MEMTRACE_REPORT_WORDS_WRITE_FAILURE_H_
#define MEMTRACE_REPORT_WORDS_WRITE_FAILURE_H_

#include <cstdint>
#include <string>

namespace memtrace::report::words {

// "the size limit was reached"; "No space left on device". `why`: a format::RecordingStop;
// `error`: errno, 0 none.
std::string WhyNotWritten(uint64_t why, int error);

// The same, and behind it in parentheses what the user can do, where that is known:
// "the size limit was reached (raise MEMTRACE_MAX_BYTES, or --max-bytes of memtrace run)".
std::string WhyNotWrittenAndCure(uint64_t why, int error);

}  // namespace memtrace::report::words

#endif  // MEMTRACE_REPORT_WORDS_WRITE_FAILURE_H_
