#include "report/words/write_failure.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "format/records.h"

namespace memtrace::report::words {
namespace {

using format::RecordingStop;

std::string Why(RecordingStop why, int error) {
  return WhyNotWrittenAndCure(static_cast<uint64_t>(why), error);
}

TEST(WriteFailureTest, TellsTheCauseAndWhatHelps) {
  EXPECT_EQ(
      Why(RecordingStop::kMaxBytes, 0),
      "the size limit was reached (raise MEMTRACE_MAX_BYTES, or --max-bytes of memtrace run)");
  EXPECT_EQ(Why(RecordingStop::kWriteFailed, ENOSPC),
            "No space left on device (make room, or have the trace elsewhere: MEMTRACE_OUT, or "
            "--output of memtrace run)");
  EXPECT_EQ(Why(RecordingStop::kWriteFailed, EFBIG),
            "File too large (raise RLIMIT_FSIZE: ulimit -f)");
  EXPECT_EQ(Why(RecordingStop::kWriteFailed, EACCES),
            "Permission denied (if the program became another user, start it as that user)");
}

TEST(WriteFailureTest, WhereNothingIsKnownToHelpTellsTheCauseAlone) {
  EXPECT_EQ(Why(RecordingStop::kOpenFailed, EPERM),
            "the trace could not be opened: Operation not permitted");
  EXPECT_EQ(Why(RecordingStop::kFileReplaced, 0), "another file had the place of the trace");
  EXPECT_EQ(WhyNotWritten(99, 0), "the reason is not known") << "of a later version";
}

}  // namespace
}  // namespace memtrace::report::words
