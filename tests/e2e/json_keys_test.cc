// Every key of the JSON of a report and of a gate is told in docs/.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

void AddKeys(const Json& json, std::set<std::string>* keys) {
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) keys->insert(key);
    if (key != "counters") AddKeys(value, keys);  // the library's own, which come and go
  }
}

std::set<std::string> NamesInDocs() {
  std::stringstream pages;
  for (const auto& file : std::filesystem::directory_iterator(MEMTRACE_SOURCE_DIR "/docs")) {
    if (file.path().extension() == ".md") pages << std::ifstream(file.path()).rdbuf();
  }
  const std::string text = pages.str();
  const std::regex name("[a-z][a-z0-9_]*");
  return {std::sregex_token_iterator(text.begin(), text.end(), name), std::sregex_token_iterator()};
}

TEST(JsonKeysTest, AreInTheDocuments) {
  const TempDir traces;
  ASSERT_EQ(RunCommand(Traced({.arguments = {TraceePath("kept_in_a_graph")}}, traces.path())).Outcome(),
            "exit 0");
  std::set<std::string> keys;
  AddKeys(Report(TraceOf(traces.path(), "kept_in_a_graph"), {}), &keys);
  const Result check = RunCommand({.arguments = {MEMTRACE_BUILD_DIR "/bin/memtrace", "check", "--format", "json",
                                                 "--fail-on", "all", "--max-leaked", "1", traces.path()}});
  EXPECT_EQ(check.Outcome(), "exit 1") << check.err;
  AddKeys(Json::parse(check.out), &keys);
  ASSERT_GT(keys.size(), 150u);
  const std::set<std::string> told = NamesInDocs();
  for (const std::string& key : keys) EXPECT_TRUE(told.contains(key)) << key;
}

}  // namespace
}  // namespace memtrace::e2e
