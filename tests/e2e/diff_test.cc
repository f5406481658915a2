// `memtrace diff` and `memtrace trend` of real programs: which line a row names.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/check_command.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

// Both calls have one fingerprint, which knows no lines. The first frees all that it has.
constexpr char kKeeps[] = R"(#include <stdlib.h>
static void* volatile kept[100];
int main(int argc, char** argv) {
  (void)argv;
  for (int i = 0; i < 1000; ++i) free(malloc(300));
  for (int i = 0; i < 4 * argc; ++i) {
    kept[i] = malloc(100);
  }
  return 0;
}
)";

TEST(DiffE2eTest, ARowNamesTheLineThatHasTheAmount) {
  TempDir directory, before, after, history;
  const std::string program = Compile(directory, "keeps", kKeeps);
  Trace(before.path(), {program});
  Trace(after.path(), {program, "more"});
  const std::string memtrace = ToolPath();
  const auto diff = [&](const std::string& by) {
    return RunCommand({.arguments = {memtrace, "diff", before.path(), after.path(), "--by", by, "--format", "json"}});
  };
  const Json live = Json::parse(diff("live").out);
  ASSERT_EQ(live.at("sites").size(), 1u) << live;
  EXPECT_EQ(live["sites"][0].at("change"), 400);
  EXPECT_EQ(live["sites"][0].at("line"), 7);
  const Json allocated = Json::parse(diff("allocated").out);
  ASSERT_EQ(allocated.at("sites").size(), 1u) << allocated;
  EXPECT_EQ(allocated["sites"][0].at("line"), 5);
  const Result added = RunCommand({.arguments = {memtrace, "trend", "--add", after.path(), history / "h"}});
  ASSERT_EQ(added.exit_status, 0) << added.err;
  const Result trend = RunCommand({.arguments = {memtrace, "trend", history / "h", "--format", "json", "--full"}});
  EXPECT_THAT(trend.out, testing::HasSubstr("\"line\":7")) << trend.out << trend.err;
}

}  // namespace
}  // namespace memtrace::e2e
