// Our own programs, examples and tracees, say and return under the library what they say and
// return without it. Numbers of five digits and more in their output are addresses, process ids and
// times: these differ from run to run, and are left out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

struct OwnProgram {
  std::string name;
  Words arguments = {};
  bool says_the_same = true;  // or it says times, memory, process ids, turns of threads
};

void PrintTo(const OwnProgram& program, std::ostream* out) { *out << program.name; }

std::string WithoutLargeNumbers(const std::string& text) {
  return std::regex_replace(text, std::regex("0x[0-9a-f]+|[0-9]{5,}"), "N");
}

void ExpectUnchanged(const std::string& path, const OwnProgram& program) {
  Command command = {.arguments = program.arguments};
  command.arguments.insert(command.arguments.begin(), path);
  const Result plain = RunCommand(command);
  TempDir traces;
  const Result traced = RunCommand(Traced(command, traces.path()));
  EXPECT_EQ(traced.Outcome(), plain.Outcome());
  EXPECT_EQ(traced.err, plain.err);
  if (program.says_the_same) {
    EXPECT_EQ(WithoutLargeNumbers(traced.out), WithoutLargeNumbers(plain.out));
  }
  EXPECT_NE(FilesIn(traces.path(), ".mtr"), Words{}) << "it was not traced";
}

const std::string kPlugins = MEMTRACE_BUILD_DIR "/tests/tracees/plugins";

class TraceeIsUnchangedTest : public ::testing::TestWithParam<OwnProgram> {};

TEST_P(TraceeIsUnchangedTest, SaysAndReturnsTheSame) {
  ExpectUnchanged(TraceePath(GetParam().name), GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    All, TraceeIsUnchangedTest,
    ::testing::Values(OwnProgram{"allocates_in_tight_places"},
                      OwnProgram{"counted_pairs", {"pair", "2000"}},
                      OwnProgram{"deep_recursion", {"2000"}},
                      OwnProgram{"distinct_stacks", {"3000", "0"}, false},
                      OwnProgram{"every_function", {"/etc/passwd"}},
                      OwnProgram{"exceptions_and_cancellation", {kPlugins, "20"}},
                      OwnProgram{"fork_generations", {}, false}, OwnProgram{"glibc_statistics"},
                      OwnProgram{"hand_blocks_over", {"2", "300"}}, OwnProgram{"heap_growth"},
                      OwnProgram{"malloc_by_address"}, OwnProgram{"named_threads"},
                      OwnProgram{"own_malloc"},
                      OwnProgram{"pass_blocks_between_threads", {"2", "500"}, false},
                      OwnProgram{"plugins_come_and_go", {kPlugins, "8"}, false},
                      OwnProgram{"reallocarray_once"}, OwnProgram{"rewrites_its_unwind_info"},
                      OwnProgram{"sampled_churn", {"2", "500"}}, OwnProgram{"sampled_sites"},
                      OwnProgram{"thread_churn", {"200", "8"}}),
    [](const auto& info) { return info.param.name; });

// Every example that was built, whichever that are.
TEST(ExamplesAreUnchangedTest, SayAndReturnTheSame) {
  size_t programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MEMTRACE_BUILD_DIR "/examples")) {
    if (!entry.is_regular_file() || entry.path().extension() == ".so") continue;
    if ((entry.status().permissions() & std::filesystem::perms::owner_exec) ==
        std::filesystem::perms::none) {
      continue;
    }
    SCOPED_TRACE(entry.path().filename().string());
    ExpectUnchanged(entry.path().string(), {entry.path().filename().string()});
    ++programs;
  }
  EXPECT_GE(programs, 14u);
}

}  // namespace
}  // namespace memtrace::e2e
