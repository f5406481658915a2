// A program of a few calls, with the library and without.

#ifndef MEMTRACE_TESTS_E2E_HOST_CALLS_H_
#define MEMTRACE_TESTS_E2E_HOST_CALLS_H_

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {

// `code` prints what its calls gave; the same with the library. The report of its trace.
inline void ExpectTheSame(const std::string& code, const std::function<void(const Json&)>& look = nullptr,
                          const std::string& children = "off") {
  TempDir directory;
  const std::string program = Compile(directory, "calls", "#define _GNU_SOURCE\n" + code,
                                      {"-pthread", "-I" + SourcePath("include")});
  const Result plain = RunCommand({.arguments = {program}, .timeout_seconds = 60});
  if (plain.exit_status == 77) GTEST_SKIP() << "not permitted here";
  const Result traced = RunCommand([&] {
    Command command = Traced({.arguments = {program}}, directory.path());
    command.timeout_seconds = 60;
    command.environment.emplace_back("MEMTRACE_CHILDREN", children);
    return command;
  }());
  EXPECT_EQ(traced.Outcome(), plain.Outcome()) << traced.err;
  EXPECT_EQ(traced.out, plain.out) << traced.err;
  if (look) look(Report(TraceOf(directory.path(), "calls")));
}

}  // namespace memtrace::e2e

#endif  // MEMTRACE_TESTS_E2E_HOST_CALLS_H_
