// Where debug information is looked for, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "symbolizer/symbolizer.h"
#include "tests/symbolizer/fixture_program.h"

namespace memtrace::symbolizer {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A copy of the gcc fixture without debug information, and that information apart.
class DebugFilesTest : public ::testing::Test {
 protected:
  DebugFilesTest() {
    fs::create_directories(directory_ / "bin");
    fs::create_directories(directory_ / "debug");
    RunCommand(absl::StrCat("objcopy --only-keep-debug ", fixture_.path(), " ", separate_));
    RunCommand(absl::StrCat("strip --strip-all -o ", stripped_, " ", fixture_.path()));
    options_.debug_dirs = {directory_ / "debug"};
  }

  // Makes stripped_ link to separate_ by name and checksum.
  void AddDebugLink() {
    RunCommand(absl::StrCat("objcopy --add-gnu-debuglink=", separate_, " ", stripped_));
  }
  void MoveSeparateTo(const std::string& path) {
    fs::create_directories(fs::path(path).parent_path());
    fs::rename(separate_, path);
  }
  void InstallByBuildId() { MoveSeparateTo(MakeBuildIdPath(options_.debug_dirs[0], build_id_)); }

  ModuleResult Look() { return SymbolizeOne(options_, module_, fixture_.Offset("innermost")); }
  std::string Expected() const {
    return absl::StrCat("+void shop::Cart::Add<long>(long)@", fixture_.Line("innermost"),
                        " < +shop::Fill(shop::Cart&)@", fixture_.Line("fill"),
                        " < shop::Checkout(int)@", fixture_.Line("checkout"));
  }
  void ExpectFoundIn(const std::string& debug_file) {
    const ModuleResult result = Look();
    EXPECT_EQ(result.state, ModuleState::kDebugInfo);
    EXPECT_THAT(result.message, IsEmpty());
    EXPECT_EQ(result.debug_file, debug_file);
    EXPECT_EQ(Chain(result.frames[0]), Expected());
  }

  TempDir directory_;
  const FixtureProgram fixture_{"gcc"};
  const std::string stripped_ = directory_ / "bin/app";
  const std::string separate_ = directory_ / "bin/app.debug";
  const std::string build_id_ = BuildIdOf(fixture_.path());
  Options options_;
  Module module_ = {.path = stripped_, .build_id = build_id_};
};

TEST_F(DebugFilesTest, AreFoundByBuildId) {
  ASSERT_EQ(build_id_.size(), 20u);
  InstallByBuildId();
  ExpectFoundIn(MakeBuildIdPath(options_.debug_dirs[0], build_id_));
}

TEST_F(DebugFilesTest, AreSearchedInEveryDebugDirectory) {
  InstallByBuildId();
  options_.debug_dirs.insert(options_.debug_dirs.begin(), "/nonexistent");
  ExpectFoundIn(MakeBuildIdPath(options_.debug_dirs[1], build_id_));
}

TEST_F(DebugFilesTest, AreFoundByLinkBesideTheProgram) {
  AddDebugLink();
  ExpectFoundIn(separate_);
}

TEST_F(DebugFilesTest, AreFoundByLinkInDotDebug) {
  AddDebugLink();
  MoveSeparateTo(directory_ / "bin/.debug/app.debug");
  ExpectFoundIn(directory_ / "bin/.debug/app.debug");
}

TEST_F(DebugFilesTest, AreFoundByLinkUnderTheDebugDirectory) {
  AddDebugLink();
  const std::string place = absl::StrCat(options_.debug_dirs[0], "/", stripped_, ".debug");
  MoveSeparateTo(place);
  const ModuleResult result = Look();
  EXPECT_EQ(Chain(result.frames[0]), Expected());
  EXPECT_TRUE(fs::equivalent(result.debug_file, place)) << result.debug_file;
}

TEST_F(DebugFilesTest, AreFoundBesideTheTargetOfASymbolicLink) {
  AddDebugLink();
  fs::create_directories(directory_ / "elsewhere");
  fs::create_symlink(stripped_, directory_ / "elsewhere/app");
  module_.path = directory_ / "elsewhere/app";
  ExpectFoundIn(separate_);
}

TEST_F(DebugFilesTest, WithAnotherChecksumAreRefused) {
  AddDebugLink();
  std::string content = ReadFile(separate_);
  content.back() = static_cast<char>(content.back() + 1);
  WriteFile(separate_, content);
  const ModuleResult result = Look();
  EXPECT_EQ(result.state, ModuleState::kSymbolsOnly);
  EXPECT_EQ(result.debug_file, "");
  EXPECT_THAT(result.message, HasSubstr("app.debug: belongs to another build"));
  EXPECT_THAT(result.missed, HasSubstr("app.debug: belongs to another build"));
  EXPECT_THAT(result.missed, Not(HasSubstr("no debug information")));
  EXPECT_THAT(result.frames[0], IsEmpty());
}

TEST_F(DebugFilesTest, OneThatIsRefusedIsNoMatterWhereAnotherIsGood) {
  AddDebugLink();
  const std::string good = directory_ / "bin/.debug/app.debug";
  MoveSeparateTo(good);
  WriteFile(separate_, ReadFile(good) + "more");  // looked at first
  ExpectFoundIn(good);
  EXPECT_EQ(Look().missed, "");
}

TEST_F(DebugFilesTest, WithAnotherBuildIdAreRefused) {
  const std::string other = FixtureProgram("gcc_dwarf4").path();
  fs::copy_file(other, MakeBuildIdPath(options_.debug_dirs[0], build_id_));
  const ModuleResult result = Look();
  EXPECT_EQ(result.state, ModuleState::kSymbolsOnly);
  EXPECT_THAT(result.frames[0], IsEmpty());
}

TEST_F(DebugFilesTest, MayHaveCompressedSections) {
  RunCommand(absl::StrCat("objcopy --compress-debug-sections=zlib ", separate_));
  InstallByBuildId();
  EXPECT_EQ(Chain(Look().frames[0]), Expected());
}

TEST_F(DebugFilesTest, MayBeCompressedByZstd) {
  RunCommand(absl::StrCat("objcopy --compress-debug-sections=zstd ", separate_));
  EXPECT_THAT(RunCommand("readelf -tW " + separate_ + " 2>/dev/null"), HasSubstr("ZSTD"));
  InstallByBuildId();
  const ModuleResult result = Look();
  EXPECT_EQ(result.message, "");
  EXPECT_EQ(Chain(result.frames[0]), Expected());
}

// What Debian's -dbgsym packages have: common parts in one more file.
TEST_F(DebugFilesTest, MayHaveASupplementaryFileOfDwz) {
  const std::string first = directory_ / "first";
  const std::string second = directory_ / "second";
  const std::string common = directory_ / "common";
  const FixtureProgram fixture("gcc_dwarf4");
  fs::copy_file(fixture.path(), first);
  fs::copy_file(FixtureProgram("gcc_sections").path(), second);
  RunCommand(absl::StrCat("objcopy --only-keep-debug ", fixture.path(), " ", second));
  RunCommand(absl::StrCat("dwz -m ", common, " -M ../common ", first, " ", second));
  ASSERT_TRUE(fs::exists(common));
  // first and second are in DIRECTORY, so ../common has to be one level up from bin/.
  fs::rename(first, directory_ / "bin/first");
  module_ = {.path = directory_ / "bin/first", .build_id = BuildIdOf(fixture.path())};

  const uint64_t offset = fixture.Offset("innermost");
  ModuleResult result = SymbolizeOne(options_, module_, offset);
  EXPECT_EQ(result.message, "");
  EXPECT_EQ(Chain(result.frames[0]), Expected());

  const std::string by_id = MakeBuildIdPath(options_.debug_dirs[0], BuildIdOf(common));
  fs::rename(common, by_id);
  result = SymbolizeOne(options_, module_, offset);
  EXPECT_EQ(result.message, "");
  EXPECT_EQ(Chain(result.frames[0]), Expected());

  fs::remove(by_id);
  result = SymbolizeOne(options_, module_, offset);
  EXPECT_THAT(result.message, HasSubstr("supplementary file ../common was not found"));
  // The function's symbol is still there, and its line.
  ASSERT_FALSE(result.frames[0].empty());
  EXPECT_EQ(result.frames[0].back().function, "shop::Checkout(int)");
}

TEST_F(DebugFilesTest, AreUsedForAModuleThatIsGone) {
  InstallByBuildId();
  fs::remove(stripped_);
  const ModuleResult result = Look();
  EXPECT_EQ(result.state, ModuleState::kDebugInfo);
  EXPECT_THAT(result.message, HasSubstr("bin/app: No such file or directory"));
  EXPECT_THAT(result.message, HasSubstr("names come from its debug file"));
  EXPECT_EQ(Chain(result.frames[0]), Expected());
}

TEST_F(DebugFilesTest, AreUsedForAModuleThatWasReplaced) {
  InstallByBuildId();
  fs::copy_file(FixtureProgram("clang").path(), stripped_, fs::copy_options::overwrite_existing);
  const ModuleResult result = Look();
  EXPECT_EQ(result.state, ModuleState::kDebugInfo);
  EXPECT_THAT(result.message, HasSubstr("bin/app: replaced since the trace"));
  EXPECT_EQ(Chain(result.frames[0]), Expected());
}

TEST_F(DebugFilesTest, AreFoundInASysrootWithAbsoluteLinks) {
  // root/bin -> /usr/bin and root/usr/lib/debug -> /var/debug, as seen from inside.
  const std::string root = directory_ / "root";
  fs::create_directories(root + "/usr/bin");
  fs::create_directories(root + "/usr/lib");
  fs::create_symlink("/usr/bin", root + "/bin");
  fs::create_symlink("/var/debug", root + "/usr/lib/debug");
  fs::rename(stripped_, root + "/usr/bin/memtrace-test-app");
  const std::string place = MakeBuildIdPath(root + "/var/debug", build_id_);
  fs::rename(separate_, place);
  options_.sysroot = root + "/";
  options_.debug_dirs = {"/usr/lib/debug"};
  module_.path = "/bin/memtrace-test-app";
  ExpectFoundIn(place);
}

TEST_F(DebugFilesTest, OutsideTheSysrootAModuleNeedsItsBuildId) {
  InstallByBuildId();
  options_.sysroot = directory_ / "empty";
  EXPECT_EQ(Look().state, ModuleState::kDebugInfo);
  module_.build_id.clear();
  const ModuleResult result = Look();
  EXPECT_EQ(result.state, ModuleState::kNotFound);
  EXPECT_THAT(result.message, HasSubstr(options_.sysroot));
}

TEST_F(DebugFilesTest, AreFetchedFromDebuginfodOnlyWhenAsked) {
  const std::string hex = absl::BytesToHexString(build_id_);
  const std::string server = directory_ / "server";
  MoveSeparateTo(absl::StrCat(server, "/buildid/", hex, "/debuginfo"));
  setenv("DEBUGINFOD_URLS", ("file://" + server + "/").c_str(), 1);
  setenv("DEBUGINFOD_CACHE_PATH", (directory_ / "cache").c_str(), 1);
  EXPECT_EQ(Look().state, ModuleState::kSymbolsOnly);
  EXPECT_FALSE(fs::exists(directory_ / "cache"));

  options_.debuginfod = true;
  const ModuleResult result = Look();
  EXPECT_EQ(result.state, ModuleState::kDebugInfo) << result.message;
  EXPECT_EQ(Chain(result.frames[0]), Expected());
  EXPECT_THAT(result.debug_file, HasSubstr(directory_ / "cache"));

  unsetenv("DEBUGINFOD_URLS");
  fs::remove_all(directory_ / "cache");
  EXPECT_THAT(Look().message, HasSubstr("DEBUGINFOD_URLS is not set"));
  EXPECT_THAT(Look().missed, HasSubstr("DEBUGINFOD_URLS is not set"));
  unsetenv("DEBUGINFOD_CACHE_PATH");
}

TEST_F(DebugFilesTest, OfLibcNameMallocWithFileAndLine) {
  const std::string libc = "/lib/x86_64-linux-gnu/libc.so.6";
  const std::string symbols = RunCommand("nm -D --defined-only " + libc);
  const size_t at = symbols.find(" T malloc@@");
  ASSERT_NE(at, std::string::npos);
  const uint64_t malloc_offset = std::strtoull(symbols.substr(at - 16, 16).c_str(), nullptr, 16);
  const Address entry = {malloc_offset, false};
  const ModuleResult result = Symbolizer(Options()).Symbolize(
      {.path = libc, .build_id = BuildIdOf(libc)}, {&entry, 1});
  EXPECT_EQ(result.state, ModuleState::kDebugInfo) << "needs the package libc6-dbg";
  EXPECT_THAT(result.debug_file, HasSubstr("/usr/lib/debug/.build-id/"));
  ASSERT_EQ(result.frames[0].size(), 1u);
  EXPECT_EQ(result.frames[0][0].function, "malloc");
  EXPECT_THAT(result.frames[0][0].file, HasSubstr("malloc/malloc.c"));
  EXPECT_GT(result.frames[0][0].line, 1000u);
}

// ---- What is refused, and what is only half there.

TEST_F(DebugFilesTest, AModuleWithAnotherBuildIdIsRefused) {
  module_.path = fixture_.path();
  module_.build_id[0] = static_cast<char>(module_.build_id[0] ^ 1);
  const ModuleResult result = Look();
  EXPECT_EQ(result.state, ModuleState::kBuildIdDiffers);
  EXPECT_THAT(result.message, HasSubstr("replaced since the trace: build-id " +
                                        absl::BytesToHexString(build_id_)));
  ASSERT_EQ(result.frames.size(), 1u);
  EXPECT_THAT(result.frames[0], IsEmpty());
}

TEST_F(DebugFilesTest, AModuleWithoutBuildIdIsNotTheOneThatHadOne) {
  RunCommand(absl::StrCat("objcopy --remove-section=.note.gnu.build-id ", fixture_.path(), " ",
                          stripped_));
  const ModuleResult result = Look();
  EXPECT_EQ(result.state, ModuleState::kBuildIdDiffers);
  EXPECT_THAT(result.message, HasSubstr("build-id (none)"));
}

TEST_F(DebugFilesTest, AStrippedModuleHasTheNamesItExports) {
  const FixtureProgram exporting("gcc_exporting");
  RunCommand(absl::StrCat("strip --strip-all -o ", stripped_, " ", exporting.path()));
  module_.build_id = BuildIdOf(exporting.path());
  ModuleResult result = SymbolizeOne(options_, module_, exporting.Offset("plain"));
  EXPECT_EQ(result.state, ModuleState::kSymbolsOnly);
  EXPECT_EQ(Chain(result.frames[0]), "PlainC@?:0");
  EXPECT_THAT(result.message, HasSubstr("no debug information"));
  result = SymbolizeOne(options_, module_, exporting.Offset("innermost"));
  EXPECT_EQ(Chain(result.frames[0]), "shop::Checkout(int)@?:0");
  EXPECT_EQ(result.frames[0][0].linkage_name, "_ZN4shop8CheckoutEi");
}

TEST_F(DebugFilesTest, AModuleWithoutDebugInformationHasItsSymbols) {
  RunCommand(absl::StrCat("strip --strip-debug -o ", stripped_, " ", fixture_.path()));
  const ModuleResult result = SymbolizeOne(options_, module_, fixture_.Offset("hidden"));
  EXPECT_EQ(result.state, ModuleState::kSymbolsOnly);
  EXPECT_EQ(Chain(result.frames[0]), "shop::(anonymous namespace)::Hidden(int)@?:0");
}

// Fedora's minidebuginfo: the symbol table that strip removed, xz-compressed.
TEST_F(DebugFilesTest, AStrippedModuleHasTheSymbolsOfItsMinidebuginfo) {
  const std::string mini = directory_ / "mini";
  RunCommand(absl::StrCat("objcopy --strip-debug ", separate_, " ", mini, " && xz ", mini,
                          " && objcopy --add-section .gnu_debugdata=", mini, ".xz ", stripped_));
  const ModuleResult result = SymbolizeOne(options_, module_, fixture_.Offset("hidden"));
  EXPECT_EQ(result.state, ModuleState::kSymbolsOnly);
  EXPECT_EQ(Chain(result.frames[0]), "shop::(anonymous namespace)::Hidden(int)@?:0");
}

TEST_F(DebugFilesTest, TheVdsoIsNoFile) {
  for (const char* path : {"linux-vdso.so.1", "[vdso]", ""}) {
    const ModuleResult result = SymbolizeOne(options_, {.path = path}, 0x1000);
    EXPECT_EQ(result.state, ModuleState::kNotFound);
    EXPECT_THAT(result.message, HasSubstr("not a file"));
    ASSERT_EQ(result.frames.size(), 1u);
    EXPECT_THAT(result.frames[0], IsEmpty());
  }
}

TEST_F(DebugFilesTest, AMissingModuleSaysSo) {
  const ModuleResult result = SymbolizeOne(options_, {.path = "/nonexistent/app"}, 0x1000);
  EXPECT_EQ(result.state, ModuleState::kNotFound);
  EXPECT_EQ(result.message, "/nonexistent/app: No such file or directory");
}

}  // namespace
}  // namespace memtrace::symbolizer
