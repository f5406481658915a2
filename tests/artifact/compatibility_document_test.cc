// docs/compatibility.md promises something of every known hazard, and names the
// tests that hold it. They exist.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/files.h"

namespace memtrace {
namespace {

namespace fs = std::filesystem;

const std::string kSource = MEMTRACE_SOURCE_DIR;

// Every match of `expression`, as its groups joined by a dot.
std::set<std::string> FindAll(const std::string& text, const std::regex& expression) {
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), expression), end; it != end; ++it) {
    std::string name;
    for (size_t group = 1; group < it->size(); ++group) {
      if (group > 1) name += ".";
      name += (*it)[group];
    }
    found.insert(name);
  }
  return found;
}

// "SuiteTest.Claim" of every test in the tree.
std::set<std::string> TestsInTheTree() {
  const std::regex macro(R"(\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\))");
  std::set<std::string> tests;
  for (const auto& entry : fs::recursive_directory_iterator(kSource + "/tests")) {
    if (entry.path().extension() == ".cc") tests.merge(FindAll(ReadFile(entry.path()), macro));
  }
  return tests;
}

struct Row {
  std::string verdict;
  std::set<std::string> tests;
};

std::map<int, std::vector<Row>> HazardRows() {
  std::map<int, std::vector<Row>> rows;
  std::istringstream lines(ReadFile(kSource + "/docs/compatibility.md"));
  const std::regex row(R"(^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$)");
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_match(line, match, row)) continue;
    rows[std::stoi(match[1])].push_back(
        {match[3], FindAll(match[4], std::regex("`(\\w+\\.\\w+)`"))});
  }
  return rows;
}

TEST(CompatibilityTest, EveryHazardHasOneVerdictAndATestThatExists) {
  const std::map<int, std::vector<Row>> rows = HazardRows();
  const std::set<std::string> tests = TestsInTheTree();
  ASSERT_GT(tests.size(), 500u);
  const std::regex verdict("^(impossible because|handled by|not supported and said so:) .*");
  for (int number = 1; number <= 51; ++number) {
    const auto found = rows.find(number);
    ASSERT_NE(found, rows.end()) << "row " << number;
    ASSERT_EQ(found->second.size(), 1u) << "row " << number;
    const Row& row = found->second.front();
    EXPECT_TRUE(std::regex_match(row.verdict, verdict)) << number << ": " << row.verdict;
    EXPECT_FALSE(row.tests.empty()) << "row " << number << " names no test";
    for (const std::string& test : row.tests) {
      EXPECT_TRUE(tests.contains(test)) << "row " << number << ": there is no " << test;
    }
  }
}

}  // namespace
}  // namespace memtrace
