// Truth by measurement: the small programs of tests/tracees/leak_corpus.cc under the library and
// under the installed Valgrind, compared record by record by `memtrace compare`. It agrees on
// each, or differs by a cause that it names and expects: the runtime's own memory, tables of
// thread-local storage, circles whose first member is decided by addresses.
//
// A case in fourteen runs each time, all of them in the long set.

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <sstream>

#include "tests/e2e/harness.h"
#include "tests/e2e/memcheck.h"

namespace memtrace::e2e {
namespace {

Words CaseNames() {
  const Result list = RunCommand({.arguments = {TraceePath("leak_corpus"), "--list"}});
  EXPECT_EQ(list.Outcome(), "exit 0") << list.err;
  Words names;
  std::istringstream lines(list.out);
  for (std::string name; std::getline(lines, name);) names.push_back(name);
  return names;
}

// What the two see differently, with its reasons; expected differences are counted by reason.
void CompareCase(const std::string& name, std::map<std::string, int>* expected) {
  SCOPED_TRACE(name);
  const TempDir directory, traces_directory;
  const std::string program = TraceePath("leak_corpus");
  const std::string traces = traces_directory.path(), xml = directory / "valgrind.xml";
  const Result ours = RunCommand(Traced({.arguments = {program, name}}, traces));
  ASSERT_EQ(ours.Outcome(), "exit 0") << ours.err;
  const Result theirs = RunCommand(
      {.arguments = MemcheckCommand({"-q", "--show-leak-kinds=all", "--num-callers=50", "--xml=yes",
                              "--xml-file=" + xml, program, name})});
  ASSERT_EQ(theirs.Outcome(), "exit 0") << theirs.err;
  const Result compared = RunCommand({.arguments = {ToolPath(), "compare",
                                                    TraceOf(traces, "leak_corpus"), xml,
                                                    "--format", "json"}});
  ASSERT_NE(compared.exit_status, 2) << compared.err;
  const Json found = Json::parse(compared.out);
  EXPECT_TRUE(found.at("here").at("scanned").get<bool>()) << "there was no scan";
  for (const Json& leak : found.at("leaks")) {
    if (leak.at("verdict") == "agree") continue;
    if (leak.at("expected").get<bool>()) {
      ++(*expected)[leak.at("reasons").dump()];
      continue;
    }
    ADD_FAILURE() << leak.at("verdict") << "\nhere  " << leak.value("here", Json()).dump()
                  << "\nthere " << leak.value("there", Json()).dump() << "\n"
                  << leak.at("reasons").dump() << "\n" << leak.at("stack").dump();
  }
}

void CompareEvery(size_t stride) {
  if (!HaveValgrind()) GTEST_SKIP() << "there is no valgrind";
  const Words names = CaseNames();
  EXPECT_GE(names.size(), 400u);
  std::map<std::string, int> expected;
  for (size_t i = 0; i < names.size(); i += stride) CompareCase(names[i], &expected);
  for (const auto& [reasons, times] : expected) {
    printf("expected %d times: %s\n", times, reasons.c_str());
  }
}

TEST(LeakCorpusTest, IsWhatValgrindSays) { CompareEvery(14); }

TEST(LeakCorpusTest, DISABLED_IsWhatValgrindSaysInEveryCase) { CompareEvery(1); }

}  // namespace
}  // namespace memtrace::e2e
