// `memtrace check`, as its tests call it, and what they give it.

#ifndef MEMTRACE_TESTS_E2E_CHECK_COMMAND_H_
#define MEMTRACE_TESTS_E2E_CHECK_COMMAND_H_

#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {

inline Result Check(const Words& options, const std::string& directory = "") {
  Command command = {.arguments = {ToolPath(), "check"}, .directory = directory};
  command.arguments.insert(command.arguments.end(), options.begin(), options.end());
  return RunCommand(command);
}

// As above, and nothing looks for leaks.
inline void TraceWithoutScan(const std::string& directory, const Words& program) {
  Command command = Traced({.arguments = program}, directory);
  command.environment.emplace_back("MEMTRACE_LEAK_CHECK", "off");
  ASSERT_EQ(RunCommand(command).Outcome(), "exit 0");
}

inline Json CheckJson(Words options) {
  options.insert(options.begin(), {"--format", "json"});
  const Result result = Check(options);
  return Json::parse(result.out);
}

// Traces `program`, which is scanned at its end, into `directory`.
inline void Trace(const std::string& directory, const Words& program) {
  const Result result = RunCommand(Traced({.arguments = program}, directory));
  ASSERT_EQ(result.Outcome(), "exit 0") << result.err;
}

// A program of the test's own; `code` is C.
inline std::string Compile(const TempDir& directory, const std::string& name, const std::string& code,
                    const Words& options = {}) {
  const std::string source = directory / (name + ".c"), program = directory / name;
  WriteFile(source, code);
  Words words = {"gcc", "-g", "-O0", "-o", program, source};
  words.insert(words.end(), options.begin(), options.end());
  const Result result = RunCommand({.arguments = words});
  EXPECT_EQ(result.exit_status, 0) << result.err;
  return program;
}

// Three sites that leak, in one word each: what a tool says of them tells them apart.
inline constexpr char kThreeLeaks[] = R"(#include <stdlib.h>
static void* volatile sink;
static __attribute__((noinline)) void Hundred(void) { sink = malloc(100); sink = NULL; }
static __attribute__((noinline)) void Twenty(void) { sink = calloc(4, 5); sink = NULL; }
static __attribute__((noinline)) void Three(void) { sink = malloc(3); sink = NULL; }
static __attribute__((noinline)) void Deep(int n) {
  if (n > 0) Deep(n - 1); else { Hundred(); Twenty(); Three(); }
}
int main(void) {
  for (int i = 0; i < 3; ++i) { Deep(2); sink = malloc(1000); free(sink); sink = NULL; }
  return 0;
})";

}  // namespace memtrace::e2e

#endif  // MEMTRACE_TESTS_E2E_CHECK_COMMAND_H_
