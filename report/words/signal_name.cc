#include "report/words/signal_name.h"

#include <string.h>

#include "absl/strings/str_cat.h"

namespace memtrace::report::words {

std::string SignalName(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name != nullptr ? absl::StrCat("SIG", name) : absl::StrCat("signal ", signal);
}

}  // namespace memtrace::report::words
