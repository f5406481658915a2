#include "report/cli/exit_status.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "report/words/escape.h"

namespace memtrace::report {

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return 0;
  const std::string line =
      absl::StrCat("memtrace: ", words::EscapeControls(status.message()), "\n");
  fputs(line.c_str(), stderr);
  return kExitFailed;
}

}  // namespace memtrace::report
