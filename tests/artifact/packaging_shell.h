// What the packaging tests share: a directory that goes away, and commands run
// by the shell with both their outputs kept. Test code; single-threaded.

#ifndef MEMTRACE_TESTS_ARTIFACT_PACKAGING_SHELL_H_
#define MEMTRACE_TESTS_ARTIFACT_PACKAGING_SHELL_H_

#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "tests/files.h"
#include "tests/temp_dir.h"

namespace memtrace::packaging {

struct CommandResult {
  int exit_status = -1;  // 128 + signal where a signal ended it
  std::string output;    // standard output and standard error
};

inline CommandResult Shell(const std::string& command) {
  CommandResult result;
  FILE* pipe = popen(("exec 2>&1\n" + command).c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[4096];
  size_t got;
  while ((got = fread(buffer, 1, sizeof(buffer), pipe)) > 0) result.output.append(buffer, got);
  const int status = pclose(pipe);
  result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace memtrace::packaging

#endif  // MEMTRACE_TESTS_ARTIFACT_PACKAGING_SHELL_H_
