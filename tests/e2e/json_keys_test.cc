// The keys of JSON are told in docs/: of a report of a trace of everything, with a leak scan; of a gate
// that fails by a limit, with leaks that a baseline allows; of a diff of two programs, which have no site
// in common; and of pages, rings and compare.

#include <gtest/gtest.h>
#include <unistd.h>

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

// Keys of what a command prints that its page does not name.
std::set<std::string> NotTold(const std::string& page, const Words& options) {
  Words words = {ToolPath()};
  words.insert(words.end(), options.begin(), options.end());
  const Result result = RunCommand({.arguments = words});
  std::set<std::string> keys;
  AddKeys(Json::parse(result.out, nullptr, /*allow_exceptions=*/false), &keys);
  EXPECT_GT(keys.size(), 15u) << result.out << result.err;
  std::stringstream text;
  text << std::ifstream(MEMTRACE_SOURCE_DIR "/docs/" + page).rdbuf();
  std::erase_if(keys, [told = text.str()](const std::string& key) {
    return told.find("`" + key + "`") != told.npos || told.find("\"" + key + "\"") != told.npos;
  });
  return keys;
}

TEST(JsonKeysTest, OfPagesRingsAndCompareAreInTheirPages) {
  const TempDir traces;
  ASSERT_EQ(RunCommand(Traced({.arguments = {TraceePath("leaks_of_each_kind")}}, traces.path())).Outcome(),
            "exit 0");
  const std::string trace = TraceOf(traces.path(), "leaks_of_each_kind"), xml = traces / "a.xml";
  const std::set<std::string> none;
  EXPECT_EQ(NotTold("pages.md", {"pages", "--format", "json", std::to_string(getpid())}), none);
  EXPECT_EQ(NotTold("rings.md", {"rings", "--format", "json", trace}), none);
  ASSERT_EQ(RunCommand({.arguments = {ToolPath(), "report", "--format", "valgrind-xml", "-o", xml, trace}})
                .Outcome(), "exit 0");
  EXPECT_EQ(NotTold("valgrind.md", {"compare", "--format", "json", trace, xml}), none);
}

TEST(JsonKeysTest, AreInTheDocuments) {
  const TempDir traces;
  ASSERT_EQ(RunCommand(Traced({.arguments = {TraceePath("kept_in_a_graph")}}, traces.path())).Outcome(),
            "exit 0");
  std::set<std::string> keys;
  AddKeys(Report(TraceOf(traces.path(), "kept_in_a_graph"), {}), &keys);
  const auto check = [&](const Words& options) {
    Words words = {MEMTRACE_BUILD_DIR "/bin/memtrace", "check", "--format", "json", "--fail-on", "all",
                   "--baseline", traces.path() + "/baseline"};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back(TraceOf(traces.path(), "kept_in_a_graph"));
    return RunCommand({.arguments = words});
  };
  EXPECT_EQ(check({"--update-baseline"}).Outcome(), "exit 0");
  const Result checked = check({"--max-leaked", "1"});
  EXPECT_EQ(checked.Outcome(), "exit 1") << checked.err;
  const Json gate = Json::parse(checked.out);
  EXPECT_FALSE(gate.at("limits").empty());
  EXPECT_TRUE(gate.at("leaks").at(0).contains("allowed"));
  AddKeys(gate, &keys);
  ASSERT_EQ(RunCommand(Traced({.arguments = {ExamplePath("leaks")}}, traces.path())).Outcome(),
            "exit 0");
  const Result compared = RunCommand(
      {.arguments = {MEMTRACE_BUILD_DIR "/bin/memtrace", "diff", "--format", "json",
                     TraceOf(traces.path(), "kept_in_a_graph"), TraceOf(traces.path(), "leaks")}});
  EXPECT_EQ(compared.Outcome(), "exit 0") << compared.err;
  const Json diff = Json::parse(compared.out);
  ASSERT_FALSE(diff.at("sites").empty());
  EXPECT_TRUE(diff.at("sites").at(0).contains("called_by_depth"));
  AddKeys(diff, &keys);
  ASSERT_GT(keys.size(), 150u);
  const std::set<std::string> told = NamesInDocs();
  for (const std::string& key : keys) EXPECT_TRUE(told.contains(key)) << key;
}

}  // namespace
}  // namespace memtrace::e2e
