// Calls between modules pass stubs without symbols; objdump is the second opinion.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

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
