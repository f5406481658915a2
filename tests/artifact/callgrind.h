// The instructions of a command, counted by Valgrind's callgrind: they do not wobble with the machine.

#ifndef MEMTRACE_TESTS_ARTIFACT_CALLGRIND_H_
#define MEMTRACE_TESTS_ARTIFACT_CALLGRIND_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace memtrace {

// A golden number of instructions is of this compiler.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ == 12 && defined(__x86_64__)
inline constexpr bool kCompilerOfGoldenNumbers = true;
#else
inline constexpr bool kCompilerOfGoldenNumbers = false;
#endif

// Of a command that a shell understands behind `before`, which may set variables and change the directory.
// Of several processes it is the one that did most.
inline double InstructionsOf(const std::string& before, const std::string& command) {
  const std::string whole =
      before + "valgrind --tool=callgrind --callgrind-out-file=/dev/null " + command + " 2>&1";
  FILE* const pipe = popen(whole.c_str(), "r");
  std::string output;
  char buffer[4096];
  size_t bytes;
  while ((bytes = fread(buffer, 1, sizeof(buffer), pipe)) > 0) output.append(buffer, bytes);
  EXPECT_EQ(pclose(pipe), 0) << output;
  double most = 0;
  for (size_t at = 0; (at = output.find("Collected : ", at)) != std::string::npos; at += 12) {
    most = std::max(most, std::atof(output.c_str() + at + 12));
  }
  EXPECT_GT(most, 0) << output;
  return most;
}

}  // namespace memtrace

#endif  // MEMTRACE_TESTS_ARTIFACT_CALLGRIND_H_
