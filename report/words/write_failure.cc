#include "report/words/write_failure.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "format/records.h"

namespace memtrace::report::words {
namespace {

absl::string_view CureOfFailure(uint64_t why, int error) {
  if (why == static_cast<uint64_t>(format::RecordingStop::kMaxBytes))
    return "raise MEMTRACE_MAX_BYTES, or --max-bytes of memtrace run";
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "make room, or have the trace elsewhere: MEMTRACE_OUT, or --output of memtrace run";
    case ENAMETOOLONG:
      return "give the trace a shorter name: MEMTRACE_OUT, or --output of memtrace run";
    case EFBIG:
      return "raise RLIMIT_FSIZE: ulimit -f";
    // Of EPERM this is not the cause: filters of system calls answer so.
    case EACCES:
      return "if the program became another user, start it as that user";
    default:
      return "";
  }
}

}  // namespace

std::string WhyNotWritten(uint64_t why, int error) {
  std::string text;
  switch (static_cast<format::RecordingStop>(why)) {
    case format::RecordingStop::kMaxBytes:
      text = "the size limit was reached";
      break;
    case format::RecordingStop::kFileReplaced:
      text = "another file had the place of the trace";
      break;
    case format::RecordingStop::kOpenFailed:
      text = "the trace could not be opened";
      break;
    case format::RecordingStop::kSandboxed:
      text = "the program had given up the right to write";
      break;
    case format::RecordingStop::kNoMemory:
      text = "there was no memory";
      break;
    case format::RecordingStop::kReserveUsedUp:
      text = "the part that was mapped before the program gave up rights was used up";
      break;
    case format::RecordingStop::kWriteFailed:
      break;
  }
  if (error != 0) absl::StrAppend(&text, text.empty() ? "" : ": ", strerror(error));
  return text.empty() ? "the reason is not known" : text;
}

std::string WhyNotWrittenAndCure(uint64_t why, int error) {
  const absl::string_view cure = CureOfFailure(why, error);
  return absl::StrCat(WhyNotWritten(why, error), cure.empty() ? "" : " (", cure,
                      cure.empty() ? "" : ")");
}

}  // namespace memtrace::report::words
