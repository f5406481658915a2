// The cache of names on disk: it saves asking, and never tells what is not so.

#include "symbolizer/symbol_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdlib>
#include <filesystem>
#include <cstring>
#include <fstream>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/file_stamp.h"
#include "symbolizer/symbolizer_process.h"
#include "tests/symbolizer/fixture_program.h"

namespace memtrace::symbolizer {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Frames that tell which address they are of; no files, so that nothing makes them stale.
ModuleResult MadeUp(std::span<const Address> addresses) {
  ModuleResult result;
  result.state = ModuleState::kDebugInfo;
  for (const Address& address : addresses) {
    Frame frame;
    frame.function = absl::StrCat("f", address.offset);
    frame.line = static_cast<uint32_t>(address.offset);
    result.frames.push_back({frame, frame});
  }
  return result;
}

std::vector<std::string> Functions(const ModuleResult& result) {
  std::vector<std::string> names;
  for (const auto& frames : result.frames) {
    names.push_back(frames.empty() ? "" : frames[0].function);
  }
  return names;
}

class SymbolCacheTest : public ::testing::Test {
 protected:
  // What a new process gets, and what it asks.
  ModuleResult Look(const std::vector<uint64_t>& offsets, uint64_t most = SymbolCache::kMostBytes) {
    std::vector<Address> addresses;
    for (const uint64_t offset : offsets) addresses.push_back({offset, true});
    asked_.clear();
    SymbolCache cache(cache_dir_, most);
    ModuleResult result = cache.Symbolize(
        options_, module_, addresses, [this](const Module&, std::span<const Address> unknown) {
          for (const Address& address : unknown) asked_.push_back(address.offset);
          return MadeUp(unknown);
        });
    return result;
  }
  std::string Entry() const { return SymbolCache(cache_dir_).PathOf(options_, module_); }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& item : fs::directory_iterator(cache_dir_)) names.push_back(item.path());
    return names;
  }

  TempDir directory_;
  const std::string cache_dir_ = directory_ / "a/cache";
  Options options_;
  Module module_ = {.path = "/bin/app", .build_id = "12345678"};
  std::vector<uint64_t> asked_;
};

TEST_F(SymbolCacheTest, AsksOnlyForWhatItDoesNotKnow) {
  EXPECT_THAT(Functions(Look({5, 3, 5})), ElementsAre("f5", "f3", "f5"));
  EXPECT_THAT(asked_, ElementsAre(5, 3, 5));
  EXPECT_THAT(Functions(Look({3, 5})), ElementsAre("f3", "f5"));
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_THAT(Functions(Look({4, 3})), ElementsAre("f4", "f3"));
  EXPECT_THAT(asked_, ElementsAre(4));
  EXPECT_THAT(Functions(Look({3, 4, 5})), ElementsAre("f3", "f4", "f5"));
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(SymbolCacheTest, KeepsBuildsPathsAndOptionsApart) {
  Look({1});
  const Module first = module_;
  module_.build_id = "12345679";
  Look({1});
  EXPECT_THAT(asked_, SizeIs(1));
  module_ = first;
  module_.path = "/bin/other";
  Look({1});
  EXPECT_THAT(asked_, SizeIs(1));
  module_ = first;
  options_.debug_dirs.push_back("/elsewhere");
  Look({1});
  EXPECT_THAT(asked_, SizeIs(1));
  options_ = {};
  options_.sysroot = "/elsewhere";
  Look({1});
  EXPECT_THAT(asked_, SizeIs(1));
  options_ = {};
  Look({1});
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(SymbolCacheTest, WithoutABuildIdOrADirectoryEverythingIsAsked) {
  module_.build_id.clear();
  Look({1});
  Look({1});
  EXPECT_THAT(asked_, SizeIs(1));
  module_.build_id = std::string(65, 'x');  // of a hostile trace
  Look({1});
  Look({1});
  EXPECT_THAT(asked_, SizeIs(1));
  EXPECT_FALSE(fs::exists(cache_dir_));
  SymbolCache none("");
  module_.build_id = "12345678";
  const Address address{7, true};
  const auto ask = [](const Module&, std::span<const Address> unknown) { return MadeUp(unknown); };
  EXPECT_EQ(none.Symbolize(options_, module_, {&address, 1}, ask).frames[0][0].function, "f7");
  EXPECT_EQ(none.misses(), 1u);
}

TEST_F(SymbolCacheTest, ADirectoryThatCannotBeMadeIsNoCache) {
  WriteFile(directory_ / "a", "a file");
  EXPECT_THAT(Functions(Look({1})), ElementsAre("f1"));
  EXPECT_THAT(Functions(Look({1})), ElementsAre("f1"));
  EXPECT_THAT(asked_, SizeIs(1));
}

TEST_F(SymbolCacheTest, IsOfItsUserOnly) {
  const mode_t before = umask(0);
  Look({1});
  umask(before);
  struct stat st;
  ASSERT_EQ(stat(cache_dir_.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0700u);
  ASSERT_EQ(stat(Entry().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600u);
  // Behind a link there may be anybody's file.
  fs::rename(Entry(), directory_ / "elsewhere");
  fs::create_symlink(directory_ / "elsewhere", Entry());
  EXPECT_THAT(Functions(Look({1})), ElementsAre("f1"));
  EXPECT_THAT(asked_, SizeIs(1));
  Look({1});
  EXPECT_THAT(asked_, IsEmpty());
  if (geteuid() == 0) {
    ASSERT_EQ(chown(Entry().c_str(), 65534, 65534), 0);
    EXPECT_THAT(Functions(Look({1})), ElementsAre("f1"));
    EXPECT_THAT(asked_, SizeIs(1));
  }
}

TEST_F(SymbolCacheTest, NoFlippedByteAndNoCutIsTakenForAnAnswer) {
  Look({1, 2, 3});
  const std::string entry = Entry(), good = ReadFile(entry);
  ASSERT_GT(good.size(), 40u);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    WriteFile(entry, bad);
    ASSERT_THAT(Functions(Look({1, 2, 3})), ElementsAre("f1", "f2", "f3")) << i;
    ASSERT_THAT(asked_, SizeIs(3)) << "byte " << i << " may be anything";
    WriteFile(entry, good.substr(0, i));
    ASSERT_THAT(Functions(Look({1, 2, 3})), ElementsAre("f1", "f2", "f3")) << i;
    ASSERT_THAT(asked_, SizeIs(3)) << "cut at " << i;
  }
  WriteFile(entry, good + "x");
  Look({1, 2, 3});
  EXPECT_THAT(asked_, SizeIs(3));
  Look({1, 2, 3});  // which wrote a good one in its place
  EXPECT_THAT(asked_, IsEmpty());
}

// Content that somebody made up, with a checksum that is right.
TEST_F(SymbolCacheTest, NonsenseWithTheRightChecksumDoesNoHarm) {
  Look({1, 2, 3});
  const std::string entry = Entry(), good = ReadFile(entry);
  constexpr size_t kHashAt = 24, kHeader = 40;
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
      bad[8 + random() % (bad.size() - 8)] = static_cast<char>(random());
    }
    const XXH128_hash_t front = XXH3_128bits(bad.data(), kHashAt);
    const XXH128_hash_t hash = XXH3_128bits_withSeed(bad.data() + kHeader, bad.size() - kHeader,
                                                     front.low64 ^ front.high64);
    std::memcpy(bad.data() + kHashAt, &hash.low64, 8);
    std::memcpy(bad.data() + kHashAt + 8, &hash.high64, 8);
    WriteFile(entry, bad);
    EXPECT_THAT(Look({1, 2, 3}).frames, SizeIs(3));
  }
}

TEST_F(SymbolCacheTest, ProcessesThatWriteAtOnceDoNotDisturbEachOther) {
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = fork();
    if (pid == 0) {
      std::mt19937 random(static_cast<unsigned>(child));
      bool right = true;
      for (int round = 0; round < 200 && right; ++round) {
        std::vector<uint64_t> offsets;
        std::vector<std::string> expected;
        for (int i = 0; i < 20; ++i) {
          offsets.push_back(random() % 1000);
          expected.push_back(absl::StrCat("f", offsets.back()));
        }
        right = Functions(Look(offsets)) == expected;
        if (round % 50 == 49) unlink(Entry().c_str());
      }
      _exit(right ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  for (const std::string& file : Files()) EXPECT_THAT(file, EndsWith(".sym"));
}

TEST_F(SymbolCacheTest, WhatWasUsedLeastRecentlyGoesFirst) {
  const auto name = [](int i) { return absl::StrCat("build", 1000 + i); };
  constexpr uint64_t kLimit = 28 << 10;
  std::vector<uint64_t> many;
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) many.push_back(random() >> 1);
  uint64_t size = 0;
  for (int i = 0; i < 40; ++i) {
    module_.build_id = name(i);
    Look(many, kLimit);
    size = fs::file_size(Entry());
    // Their order, whatever the clock of the file system: the first is used again and again.
    for (int j = 0; j <= i; ++j) {
      module_.build_id = name(j);
      const struct timespec times[2] = {{j == 0 ? 1000 : j, 0}, {j == 0 ? 1000 : j, 0}};
      utimensat(AT_FDCWD, Entry().c_str(), times, 0);
    }
    uint64_t total = 0;
    for (const std::string& file : Files()) total += fs::file_size(file);
    EXPECT_LE(total, kLimit);
  }
  ASSERT_LT(size * 3, kLimit);
  const auto there = [&](int i) {
    module_.build_id = name(i);
    return fs::exists(Entry());
  };
  EXPECT_TRUE(there(0));
  EXPECT_TRUE(there(39));
  EXPECT_FALSE(there(1));
}

TEST_F(SymbolCacheTest, ReadingCountsAsUse) {
  Look({1});
  const struct timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, Entry().c_str(), old, 0), 0);
  Look({1});
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_GT(base::FileStamp::Of(Entry()).modified_ns, int64_t{1'000'000'000'000});
}

TEST_F(SymbolCacheTest, WhatAKilledWriterLeftIsRemoved) {
  Look({1});
  const std::string left = cache_dir_ + "/.memtrace-abcdef", young = cache_dir_ + "/.memtrace-ghijkl";
  WriteFile(left, "half");
  WriteFile(young, "half");
  const struct timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, left.c_str(), old, 0), 0);
  Look({2});
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(young));  // somebody may be writing it
}

// A user may keep what is dear to him where he lets the cache be.
TEST_F(SymbolCacheTest, NothingThatIsNotItsOwnIsRemoved) {
  Look({1}, 1);
  const std::string trace = cache_dir_ + "/app.mtr", other = cache_dir_ + "/notes.sym",
                    dotted = cache_dir_ + "/.memtrace-settings";
  for (const std::string& file : {trace, other, dotted}) {
    WriteFile(file, std::string(10'000, 'x'));
    const struct timespec old[2] = {{1000, 0}, {1000, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), old, 0), 0);
  }
  const std::string first = Entry();
  const struct timespec old[2] = {{2000, 0}, {2000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, first.c_str(), old, 0), 0);
  module_.build_id = "another";
  Look({1}, 1);
  EXPECT_FALSE(fs::exists(first));
  for (const std::string& file : {trace, other, dotted}) EXPECT_TRUE(fs::exists(file)) << file;
}

TEST(SymbolCacheDirectoryTest, IsChosenByOptionThenVariableThenXdgThenHome) {
  setenv("HOME", "/home/u", 1);
  unsetenv("XDG_CACHE_HOME");
  unsetenv("MEMTRACE_SYMBOL_CACHE");
  EXPECT_EQ(SymbolCacheDirectory(), "/home/u/.cache/memtrace");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(SymbolCacheDirectory(), "/home/u/.cache/memtrace");
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(SymbolCacheDirectory(), "/x/memtrace");
  setenv("MEMTRACE_SYMBOL_CACHE", "/env", 1);
  EXPECT_EQ(SymbolCacheDirectory(), "/env");
  EXPECT_EQ(SymbolCacheDirectory("/option"), "/option");
  EXPECT_EQ(SymbolCacheDirectory("off"), "");
  setenv("MEMTRACE_SYMBOL_CACHE", "off", 1);
  EXPECT_EQ(SymbolCacheDirectory(), "");
  unsetenv("MEMTRACE_SYMBOL_CACHE");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(SymbolCacheDirectory(), "");
}

// With real files: a program without debug information, which comes and goes.
class CachedFilesTest : public ::testing::Test {
 protected:
  CachedFilesTest() {
    options_.cache_dir = directory_ / "cache";
    options_.debug_dirs = {directory_ / "debug"};
    RunCommand(absl::StrCat("objcopy --only-keep-debug ", fixture_.path(), " ", separate_));
    RunCommand(absl::StrCat("strip --strip-all -o ", module_.path, " ", fixture_.path()));
  }

  // As the next report does, and whether that knew the answer.
  ModuleResult Look(bool* known) {
    SymbolizerProcess process(options_);
    const Address address{fixture_.Offset("innermost"), true};
    ModuleResult result = process.Symbolize(module_, {&address, 1});
    *known = process.cache().hits() == 1;
    return result;
  }
  void Expect(bool known, ModuleState state) {
    bool was_known = false;
    const ModuleResult result = Look(&was_known);
    EXPECT_EQ(was_known, known);
    EXPECT_EQ(result.state, state);
    const bool named = !result.frames[0].empty() && result.frames[0][0].line != 0;
    EXPECT_EQ(named, state == ModuleState::kDebugInfo);
  }

  TempDir directory_;
  const FixtureProgram fixture_{"gcc"};
  const std::string separate_ = directory_ / "app.debug";
  Module module_ = {.path = directory_ / "app", .build_id = BuildIdOf(fixture_.path())};
  Options options_;
};

TEST_F(CachedFilesTest, DebugSymbolsThatAreInstalledLaterTakeEffect) {
  Expect(false, ModuleState::kSymbolsOnly);
  Expect(true, ModuleState::kSymbolsOnly);
  const std::string installed = MakeBuildIdPath(options_.debug_dirs[0], module_.build_id);
  fs::copy(separate_, installed);
  Expect(false, ModuleState::kDebugInfo);
  Expect(true, ModuleState::kDebugInfo);
  fs::remove(installed);
  Expect(false, ModuleState::kSymbolsOnly);
  Expect(true, ModuleState::kSymbolsOnly);
}

TEST_F(CachedFilesTest, AReplacedDebugFileIsReadAgain) {
  const std::string installed = MakeBuildIdPath(options_.debug_dirs[0], module_.build_id);
  fs::copy(separate_, installed);
  Expect(false, ModuleState::kDebugInfo);
  Expect(true, ModuleState::kDebugInfo);
  // The same size and time of modification: the inode and ctime tell.
  const auto time = fs::last_write_time(installed);
  fs::copy(installed, installed + ".new");
  fs::rename(installed + ".new", installed);
  fs::last_write_time(installed, time);
  Expect(false, ModuleState::kDebugInfo);
  WriteFile(installed, "no ELF file");
  Expect(false, ModuleState::kSymbolsOnly);
}

TEST_F(CachedFilesTest, AModuleThatWasReplacedKeepsTheNamesThatWereFound) {
  const std::string installed = MakeBuildIdPath(options_.debug_dirs[0], module_.build_id);
  fs::copy(separate_, installed);
  Expect(false, ModuleState::kDebugInfo);
  fs::remove(installed);
  fs::copy(FixtureProgram("clang").path(), module_.path, fs::copy_options::overwrite_existing);
  for (int round = 0; round < 2; ++round) {
    Expect(true, ModuleState::kDebugInfo);
    bool known = false;
    EXPECT_EQ(Look(&known).missed,
              module_.path + " is another build now: its names are those of an earlier report");
  }
  fs::remove(module_.path);
  Expect(true, ModuleState::kDebugInfo);
  // Of addresses that nobody asked for then nothing is known.
  SymbolizerProcess process(options_);
  const Address addresses[] = {{fixture_.Offset("innermost"), true}, {1, true}};
  const ModuleResult result = process.Symbolize(module_, addresses);
  EXPECT_FALSE(result.frames[0].empty());
  EXPECT_TRUE(result.frames[1].empty());
  EXPECT_EQ(result.missed, module_.path + " is gone: its names are those of an earlier report, "
                                          "which 1 of its 2 addresses lack");
  EXPECT_EQ(process.cache().hits(), 1u);
  EXPECT_EQ(process.cache().misses(), 1u);
}

TEST_F(CachedFilesTest, AModuleThatWasReplacedBeforeItWasAskedIsRefusedAsEver) {
  fs::copy(FixtureProgram("clang").path(), module_.path, fs::copy_options::overwrite_existing);
  Expect(false, ModuleState::kBuildIdDiffers);
  Expect(false, ModuleState::kBuildIdDiffers);  // and that is not kept
  fs::remove(module_.path);
  Expect(false, ModuleState::kNotFound);
}

TEST_F(CachedFilesTest, TheAnswersAreThoseOfTheSymbolizer) {
  std::vector<Address> addresses;
  for (const auto& [mark, offset] : fixture_.offsets()) addresses.push_back({offset, true});
  const Module whole = {.path = fixture_.path(), .build_id = module_.build_id};
  const ModuleResult direct = Symbolizer(Options()).Symbolize(whole, addresses);
  for (int round = 0; round < 2; ++round) {
    SymbolizerProcess process(options_);
    const ModuleResult result = process.Symbolize(whole, addresses);
    EXPECT_EQ(process.cache().hits(), round == 0 ? 0 : addresses.size());
    EXPECT_EQ(result.state, direct.state);
    EXPECT_EQ(result.message, direct.message);
    EXPECT_EQ(result.missed, direct.missed);
    EXPECT_EQ(result.debug_file, direct.debug_file);
    ASSERT_EQ(result.frames.size(), direct.frames.size());
    for (size_t i = 0; i < direct.frames.size(); ++i) {
      EXPECT_EQ(Chain(result.frames[i]), Chain(direct.frames[i]));
    }
  }
}

}  // namespace
}  // namespace memtrace::symbolizer
