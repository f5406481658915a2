// Files that are no ELF files, cut short, or damaged: a message, never a crash.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <elf.h>
#include <sys/stat.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "symbolizer/symbolizer.h"
#include "tests/symbolizer/fixture_program.h"

namespace memtrace::symbolizer {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DamagedFilesTest : public ::testing::Test {
 protected:
  ModuleResult LookIn(const std::string& content, std::span<const Address> addresses) {
    WriteFile(path_, content);
    ModuleResult result = Symbolizer(options_).Symbolize({.path = path_}, addresses);
    EXPECT_EQ(result.frames.size(), addresses.size());
    return result;
  }
  ModuleResult LookIn(const std::string& content) {
    const Address address = {0x1200, true};
    return LookIn(content, {&address, 1});
  }

  TempDir directory_;
  const std::string path_ = directory_ / "damaged";
  Options options_ = {.debug_dirs = {}};
};

TEST_F(DamagedFilesTest, ForeignFilesAreUnreadable) {
  for (const std::string content : {"", "#!/bin/sh\n", "\x7f""ELF", "!<arch>\n"}) {
    const ModuleResult result = LookIn(content);
    EXPECT_EQ(result.state, ModuleState::kUnreadable);
    EXPECT_THAT(result.message, HasSubstr("not an ELF file"));
    EXPECT_THAT(result.frames[0], IsEmpty());
  }
}

TEST_F(DamagedFilesTest, DirectoriesAndPipesAreUnreadable) {
  ModuleResult result = SymbolizeOne(options_, {.path = directory_.path()}, 0);
  EXPECT_EQ(result.state, ModuleState::kUnreadable);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  result = SymbolizeOne(options_, {.path = path_}, 0);
  EXPECT_EQ(result.state, ModuleState::kUnreadable);
  EXPECT_THAT(result.message, HasSubstr("not a regular file"));
}

TEST_F(DamagedFilesTest, OtherKindsOfElfFileAreUnreadable) {
  const std::string whole = ReadFile(FixtureProgram("gcc").path());
  std::string changed = whole;
  changed[EI_DATA] = ELFDATA2MSB;
  EXPECT_EQ(LookIn(changed).state, ModuleState::kUnreadable);
  changed = whole;
  const Elf64_Half core = ET_CORE;
  std::memcpy(changed.data() + offsetof(Elf64_Ehdr, e_type), &core, sizeof core);
  const ModuleResult result = LookIn(changed);
  EXPECT_EQ(result.state, ModuleState::kUnreadable);
  EXPECT_THAT(result.message, HasSubstr("not an executable or shared library"));
}

TEST_F(DamagedFilesTest, ATruncatedFileSaysSo) {
  const std::string whole = ReadFile(FixtureProgram("gcc").path());
  const ModuleResult result = LookIn(whole.substr(0, whole.size() / 2));
  EXPECT_EQ(result.state, ModuleState::kUnreadable);
  EXPECT_THAT(result.message, HasSubstr("cut short"));
}

// Every build of the fixture, cut at many places and with bytes changed in many
// ways. That no frame is wrong cannot be asked; that nothing crashes can, and
// that an untouched file is still read shows that the addresses reach the code.
class MutatedFilesTest : public DamagedFilesTest,
                         public ::testing::WithParamInterface<const char*> {};

TEST_P(MutatedFilesTest, NeverCrash) {
  const FixtureProgram fixture(GetParam());
  const std::string whole = ReadFile(fixture.path());
  std::vector<Address> addresses;
  for (const auto& [mark, offset] : fixture.offsets()) addresses.push_back({offset, true});
  for (uint64_t offset = 0; offset < 0x3000; offset += 0x81) addresses.push_back({offset, false});
  EXPECT_EQ(LookIn(whole, addresses).state, ModuleState::kDebugInfo);

  for (size_t cut = 0; cut < whole.size(); cut += 509) LookIn(whole.substr(0, cut), addresses);

  std::mt19937 random(20240601);
  for (int round = 0; round < MEMTRACE_MUTATIONS; ++round) {
    std::string changed = whole;
    const int changes = 1 << (random() % 8);
    for (int i = 0; i < changes; ++i) {
      // The last part of the file is debug information and section headers.
      const size_t low = random() % 4 == 0 ? 0 : whole.size() / 3;
      const size_t at = low + random() % (whole.size() - low);
      switch (random() % 3) {
        case 0:
          changed[at] = static_cast<char>(random());
          break;
        case 1:
          changed[at] = static_cast<char>(changed[at] ^ (1 << (random() % 8)));
          break;
        default:
          changed[at] = random() % 2 == 0 ? '\xff' : '\0';
      }
    }
    LookIn(changed, addresses);
  }
}

INSTANTIATE_TEST_SUITE_P(Builds, MutatedFilesTest,
                         ::testing::Values("gcc", "gcc_dwarf4", "gcc_gz", "gcc_split",
                                           "gcc_type_units", "gcc_dwz", "clang"),
                         [](const auto& info) {
                           std::string name;
                           for (const char* c = info.param; *c != '\0'; ++c) {
                             if (isalnum(*c)) name += *c;
                           }
                           return name;
                         });

}  // namespace
}  // namespace memtrace::symbolizer
