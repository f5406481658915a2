// Calls between modules pass stubs without symbols; objdump is the second opinion.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "symbolizer/symbolizer.h"
#include "tests/symbolizer/fixture_program.h"

namespace memtrace::symbolizer {
namespace {

// "ADDRESS <name@plt>:" lines of objdump, versions removed.
std::map<uint64_t, std::string> StubsByObjdump(const std::string& path) {
  std::map<uint64_t, std::string> stubs;
  for (absl::string_view line :
       absl::StrSplit(RunCommand("objdump -d " + path + " 2>/dev/null"), '\n')) {
    const size_t open = line.find(" <");
    const size_t plt = line.find("@plt>:");
    if (open == absl::string_view::npos || plt == absl::string_view::npos) continue;
    std::string name(line.substr(open + 2, plt - open - 2));
    name = name.substr(0, name.find('@'));
    // objdump names the stub of an IFUNC after its address.
    if (name.starts_with("*ABS*")) continue;
    stubs[std::strtoull(std::string(line.substr(0, open)).c_str(), nullptr, 16)] = name + "@plt";
  }
  return stubs;
}

class PltNamesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(PltNamesTest, AgreeWithObjdump) {
  const std::string parameter = GetParam();
  const std::string path = parameter.starts_with("/")
                               ? parameter
                               : absl::StrCat(MEMTRACE_FIXTURE_DIR, "/", parameter);
  const std::map<uint64_t, std::string> stubs = StubsByObjdump(path);
  ASSERT_GE(stubs.size(), 3u);
  std::vector<Address> addresses;
  for (const auto& [address, name] : stubs) {
    addresses.push_back({address, false});
    addresses.push_back({address + 4, false});
  }
  const ModuleResult result = Symbolizer(Options()).Symbolize({.path = path}, addresses);
  size_t i = 0;
  for (const auto& [address, name] : stubs) {
    for (int half = 0; half < 2; ++half, ++i) {
      ASSERT_EQ(result.frames[i].size(), 1u) << std::hex << address << " " << name;
      const Frame& frame = result.frames[i][0];
      const std::string linkage =
          frame.linkage_name.empty() ? frame.function : frame.linkage_name + "@plt";
      EXPECT_EQ(linkage, name) << std::hex << address;
    }
  }
}

// The stubs that objdump knows no names of: each by the word that it jumps through, "# ADDRESS <name@VERSION>" in its code.
std::map<uint64_t, std::string> StubsByTheirWords(const std::string& path) {
  std::map<uint64_t, std::string> stubs;
  for (absl::string_view line :
       absl::StrSplit(RunCommand("objdump -d -j .plt -j .plt.got " + path + " 2>/dev/null"), '\n')) {
    const size_t colon = line.find(":\t"), word = line.find("# "), name = line.find(" <", word);
    if (colon == absl::string_view::npos || name == absl::string_view::npos) continue;
    const absl::string_view version = line.substr(name + 2, line.find('@', name) - name - 2);
    if (version.empty() || version.find('>') != absl::string_view::npos) continue;
    const uint64_t address = std::strtoull(std::string(line.substr(0, colon)).c_str(), nullptr, 16);
    stubs[address & ~uint64_t{15}] = absl::StrCat(version, "@plt");
  }
  return stubs;
}

class OtherLinkersTest : public ::testing::TestWithParam<const char*> {};

TEST_P(OtherLinkersTest, StubsHaveTheNamesOfTheirWords) {
  const std::string path = absl::StrCat(MEMTRACE_FIXTURE_DIR, "/", GetParam());
  const std::map<uint64_t, std::string> stubs = StubsByTheirWords(path);
  ASSERT_GE(stubs.size(), 5u);
  std::vector<Address> addresses;
  for (const auto& [address, name] : stubs) addresses.push_back({address, false});
  const ModuleResult result = Symbolizer(Options()).Symbolize({.path = path}, addresses);
  size_t i = 0;
  for (const auto& [address, name] : stubs) {
    const std::vector<Frame>& frames = result.frames[i++];
    ASSERT_EQ(frames.size(), 1u) << std::hex << address << " " << name;
    const Frame& frame = frames.front();
    EXPECT_EQ(frame.linkage_name.empty() ? frame.function : frame.linkage_name + "@plt", name) << std::hex << address;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, OtherLinkersTest, ::testing::Values("gcc", "gcc_lazy", "gcc_mold", "clang_retpoline"));

// Calls of named functions and stubs, "call ADDRESS <name>" and "call *0x..(%rip) # ADDRESS <name@...>",
// with the address behind them. What is not the first byte of a function is written "name+0x..".
std::map<uint64_t, std::string> CallsByObjdump(const std::string& path) {
  std::map<uint64_t, std::string> calls;
  bool is_call = false;
  std::string called;
  for (absl::string_view line :
       absl::StrSplit(RunCommand("objdump -d --no-show-raw-insn " + path + " 2>/dev/null"), '\n')) {
    const size_t colon = line.find(":\t");
    if (colon == absl::string_view::npos) {
      is_call = false;
      continue;
    }
    const uint64_t address = std::strtoull(std::string(line.substr(0, colon)).c_str(), nullptr, 16);
    if (is_call) calls[address] = called;
    is_call = line.find("\tcall ") != absl::string_view::npos;
    const size_t open = line.rfind('<'), close = line.rfind('>');
    is_call = is_call && open != absl::string_view::npos && close != absl::string_view::npos;
    if (!is_call) continue;
    called = std::string(line.substr(open + 1, close - open - 1));
    is_call = called.find('+') == std::string::npos && called.find("*ABS*") == std::string::npos;
    called = called.substr(0, called.find('@'));
  }
  return calls;
}

// Where names are, versions removed: functions have several names, and names several versions.
std::map<std::string, std::set<uint64_t>> AddressesByNm(const std::string& path) {
  std::map<std::string, std::set<uint64_t>> addresses;
  for (absl::string_view line : absl::StrSplit(
           RunCommand(absl::StrCat("nm ", path, " 2>/dev/null; nm -D ", path, " 2>/dev/null")), '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() != 3) continue;
    addresses[words[2].substr(0, words[2].find('@'))].insert(
        std::strtoull(words[0].c_str(), nullptr, 16));
  }
  return addresses;
}

TEST_P(PltNamesTest, CallsNameWhatObjdumpSays) {
  const std::string parameter = GetParam();
  const std::string path = parameter.starts_with("/")
                               ? parameter
                               : absl::StrCat(MEMTRACE_FIXTURE_DIR, "/", parameter);
  const std::map<uint64_t, std::string> calls = CallsByObjdump(path);
  ASSERT_GE(calls.size(), 3u);
  std::vector<Address> addresses;
  for (const auto& [address, name] : calls) addresses.push_back({.offset = address, .called = true});
  const ModuleResult result = Symbolizer(Options()).Symbolize({.path = path}, addresses);
  const std::map<std::string, std::set<uint64_t>> where = AddressesByNm(path);
  size_t i = 0, known = 0;
  for (const auto& [address, name] : calls) {
    const std::vector<Frame>& frames = result.frames[i++];
    if (frames.empty()) continue;
    ASSERT_EQ(frames.size(), 1u);
    ++known;
    const Frame& frame = frames.front();
    const std::string& ours = frame.linkage_name.empty() ? frame.function : frame.linkage_name;
    if (ours == name) continue;
    ASSERT_TRUE(where.contains(ours)) << ours << ", " << name << std::hex << " before " << address;
    const std::set<uint64_t>& theirs = where.at(name);
    EXPECT_TRUE(std::any_of(theirs.begin(), theirs.end(), [&](uint64_t one) {
      return where.at(ours).contains(one);
    })) << ours << ", " << name;
  }
  EXPECT_GE(known, calls.size() * 99 / 100) << "of " << calls.size();
}

INSTANTIATE_TEST_SUITE_P(Files, PltNamesTest,
                         ::testing::Values("gcc", "gcc_no_pie", "gcc_cet", "gcc_cet_lazy",
                                           "gcc_lazy", "/lib/x86_64-linux-gnu/libstdc++.so.6",
                                           "/lib/x86_64-linux-gnu/libm.so.6"),
                         [](const auto& info) {
                           std::string name;
                           for (const char* c = info.param; *c != '\0'; ++c) {
                             if (isalnum(*c)) name += *c;
                           }
                           return name;
                         });

}  // namespace
}  // namespace memtrace::symbolizer
