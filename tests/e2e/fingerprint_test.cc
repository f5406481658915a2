// Fingerprints survive a rebuild: tests/tracees/rebuilt is built with several compilers and
// optimisation levels, in directories of different names and with moved lines, and its call
// sites must get the same fingerprints. Each site allocates blocks of a size of its own; that
// is how the test knows it again.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

struct Build {
  std::string name;  // "gcc -O2"
  std::string cc, cxx, level;
  bool moved = false;  // every function further down in its file, in a directory of another name
};

const std::vector<std::string>& Units() {
  static const auto& units = *new std::vector<std::string>{"shapes", "parser", "jobs", "main"};
  return units;
}

void Run(const Words& arguments, const std::string& directory) {
  const Result result = RunCommand({.arguments = arguments, .directory = directory});
  EXPECT_EQ(result.exit_status, 0) << arguments[0] << " " << result.Outcome() << "\n" << result.err;
}

// Blank lines and comments before and between the functions.
std::string Moved(const std::string& source) {
  std::istringstream lines(source);
  std::string out = "// one line more\n\n", line;
  int i = 0;
  while (std::getline(lines, line)) {
    out += line + "\n";
    if (line.empty()) out += std::string(static_cast<size_t>(1 + i++ % 3), '\n');
  }
  return out;
}

using Stacks = std::map<std::string, std::string>;  // fingerprint -> its stack, to be shown
using Sites = std::map<uint64_t, Stacks>;           // by size of the blocks

std::string Shown(const Json& stack) {
  std::string text;
  for (const Json& frame : stack) {
    text += "      " + frame.value("function", "?") + "  " + frame.value("file", "?") +
            (frame.value("inlined", false) ? "  inlined\n" : "\n");
  }
  return text;
}

// Builds it, once.
const Sites& SitesOf(const Build& build) {
  static auto& known = *new std::map<std::string, Sites>;
  const auto [it, is_new] = known.try_emplace(build.name);
  Sites& sites = it->second;
  if (!is_new) return sites;
  const TempDir temp;
  const std::string directory = temp / (build.moved ? "another-name/src" : "src");
  Run({"mkdir", "-p", directory}, "");
  for (const std::string& name : FilesIn(SourcePath("tests/tracees/rebuilt"))) {
    const std::string source = ReadFile(SourcePath("tests/tracees/rebuilt/" + name));
    WriteFile(directory + "/" + name, build.moved ? Moved(source) : source);
  }
  Run({build.cc, "-g", build.level, "-c", "legacy.c"}, directory);
  Words link = {build.cxx, "-std=c++17", "-g", build.level, "-pthread", "-o", "rebuilt", "legacy.o"};
  for (const std::string& unit : Units()) link.push_back(unit + ".cc");
  Run(link, directory);
  const std::string trace = directory + "/t.mtr";
  Run({ToolPath(), "run", "-q", "-o", trace, "--library", LibraryPath(), "--", "./rebuilt"},
      directory);
  if (!Exists(trace)) return sites;  // which failed the test
  const Json report = Report(trace, {"--full"});
  for (const Json& site : report["sites"]) {
    const uint64_t size = site["bytes_allocated"].get<uint64_t>() / site["allocations"].get<uint64_t>();
    if (size < 2000 || size >= 6000) continue;  // the C++ library's own, and small ones
    sites[size][site["fingerprint"]] = Shown(site["stack"]);
  }
  return sites;
}

struct Stay {
  size_t same = 0, all = 0;
  std::string differ;
};

Stay Compare(const Sites& one, const Sites& other) {
  Stay stay;
  for (const auto& [size, stacks] : one) {
    const auto found = other.find(size);
    std::set<std::string> mine, theirs;
    for (const auto& [fingerprint, stack] : stacks) mine.insert(fingerprint);
    if (found != other.end()) {
      for (const auto& [fingerprint, stack] : found->second) theirs.insert(fingerprint);
    }
    ++stay.all;
    if (mine == theirs) {
      ++stay.same;
      continue;
    }
    stay.differ += "  blocks of " + std::to_string(size) + "\n";
    for (const auto& [fingerprint, stack] : stacks) {
      if (!theirs.contains(fingerprint)) stay.differ += "    " + fingerprint + "\n" + stack;
    }
    if (found == other.end()) continue;
    for (const auto& [fingerprint, stack] : found->second) {
      if (!mine.contains(fingerprint)) stay.differ += "    or " + fingerprint + "\n" + stack;
    }
  }
  return stay;
}

// 95 of 100 sites keep the name; and in each build different functions have different ones.
void ExpectTheSame(const std::vector<Build>& builds) {
  std::vector<Sites> sites;
  for (const Build& build : builds) {
    sites.push_back(SitesOf(build));
    EXPECT_GE(sites.back().size(), 45u) << build.name;
  }
  for (size_t i = 0; i < builds.size(); ++i) {
    for (size_t j = i + 1; j < builds.size(); ++j) {
      const Stay stay = Compare(sites[i], sites[j]);
      std::printf("%-12s %-12s %zu of %zu\n", builds[i].name.c_str(), builds[j].name.c_str(),
                  stay.same, stay.all);
      EXPECT_GE(stay.same * 100, stay.all * 95)
          << builds[i].name << " and " << builds[j].name << "\n" << stay.differ;
    }
  }
}

bool Here(const std::string& compiler) {
  return RunCommand({.arguments = {"sh", "-c", "command -v " + compiler}}).exit_status == 0;
}

const Build kGcc0 = {"gcc -O0", "gcc", "g++", "-O0"};
const Build kGcc2 = {"gcc -O2", "gcc", "g++", "-O2", /*moved=*/true};
const Build kClang0 = {"clang -O0", "clang", "clang++", "-O0", /*moved=*/true};
const Build kClang2 = {"clang -O2", "clang", "clang++", "-O2", /*moved=*/true};

TEST(RebuildTest, KeepsFingerprints) {
  if (!Here("g++") || !Here("clang++")) GTEST_SKIP() << "needs g++ and clang++";
  ExpectTheSame({kGcc0, kClang2});
}

TEST(RebuildTest, DISABLED_KeepsFingerprintsOfAllPairs) {
  if (!Here("g++") || !Here("clang++")) GTEST_SKIP() << "needs g++ and clang++";
  ExpectTheSame({kGcc0, {"gcc -O1", "gcc", "g++", "-O1"}, kGcc2, {"gcc -O3", "gcc", "g++", "-O3"},
                 {"gcc -Os", "gcc", "g++", "-Os"}, kClang0, kClang2,
                 {"clang -Os", "clang", "clang++", "-Os"}});
}

// The sizes of the functions that have a name or a parameter in common with another.
TEST(RebuildTest, TellsFunctionsOfOneNameApart) {
  const Sites& sites = SitesOf(kGcc0);
  std::map<std::string, uint64_t> seen;
  for (const uint64_t size : {3006, 3007, 3008, 3009, 3010, 4021, 4121, 5003, 5004, 5005, 5006}) {
    ASSERT_TRUE(sites.contains(size)) << size;
    for (const auto& [fingerprint, stack] : sites.at(size)) {
      const auto [it, is_new] = seen.try_emplace(fingerprint, size);
      EXPECT_TRUE(is_new || it->second == size) << size << " and " << it->second << "\n" << stack;
    }
  }
}

}  // namespace
}  // namespace memtrace::e2e
