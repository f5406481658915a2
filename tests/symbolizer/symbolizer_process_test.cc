// What a module's file may do to the process that reads it, and what remains of it.

#include "symbolizer/symbolizer_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <dirent.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>

#include "symbolizer/answer_bytes.h"
#include "symbolizer/demangle.h"
#include "symbolizer/module_answer.h"
#include "tests/symbolizer/fixture_program.h"

namespace memtrace::symbolizer {
namespace {

using ::testing::HasSubstr;

const Module kModule = {.path = "/bin/true"};
const std::vector<Address> kAddresses = {{0x1000}, {0x2000}};

ModuleResult ResultOf(SymbolizerProcess::Work work, SymbolizerProcess::Limits limits = {}) {
  SymbolizerProcess process({}, limits);
  process.ReplaceWorkForTesting(std::move(work));
  return process.Symbolize(kModule, kAddresses);
}

void ExpectNoNames(const ModuleResult& result, const std::string& why) {
  EXPECT_EQ(result.state, ModuleState::kUnreadable);
  EXPECT_THAT(result.message, HasSubstr("/bin/true"));
  EXPECT_THAT(result.message, HasSubstr(why));
  EXPECT_EQ(result.frames.size(), kAddresses.size());
}

ModuleResult Known() {
  ModuleResult result;
  result.state = ModuleState::kDebugInfo;
  result.message = "a remark";
  result.missed = "and what is missed";
  result.debug_file = "/debug/file";
  result.frames = {{{"inner", "_Z5inner", "a.h", 3, true}, {"outer", "", "a.c", 9, false}}, {}};
  return result;
}

void ExpectKnown(const ModuleResult& result) {
  EXPECT_EQ(result.state, ModuleState::kDebugInfo);
  EXPECT_EQ(result.message, "a remark");
  EXPECT_EQ(result.missed, "and what is missed");
  EXPECT_EQ(result.debug_file, "/debug/file");
  ASSERT_EQ(result.frames.size(), 2u);
  ASSERT_EQ(result.frames[0].size(), 2u);
  EXPECT_EQ(result.frames[0][0].linkage_name, "_Z5inner");
  EXPECT_EQ(result.frames[0][0].line, 3u);
  EXPECT_TRUE(result.frames[0][0].inlined);
  EXPECT_EQ(result.frames[0][1].function, "outer");
  EXPECT_EQ(result.frames[0][1].file, "a.c");
  EXPECT_TRUE(result.frames[1].empty());
}

TEST(SymbolizerProcessTest, AnswersWhatTheSymbolizerFound) {
  ExpectKnown(ResultOf([](const Module&, std::span<const Address>) { return Known(); }));
}

TEST(SymbolizerProcessTest, GivesTheFramesOfARealFile) {
  const FixtureProgram fixture("gcc");
  std::vector<Address> addresses;
  for (const auto& [mark, offset] : fixture.offsets()) addresses.push_back({offset, true});
  const Module module = {.path = fixture.path()};
  const ModuleResult here = Symbolizer({}).Symbolize(module, addresses);
  const ModuleResult there = SymbolizerProcess({}).Symbolize(module, addresses);
  EXPECT_EQ(there.state, ModuleState::kDebugInfo);
  EXPECT_EQ(EncodeAnswer(there), EncodeAnswer(here));
}

TEST(SymbolizerProcessTest, ACrashCostsTheNamesAndSaysSo) {
  ExpectNoNames(ResultOf([](const Module&, std::span<const Address>) -> ModuleResult {
                  signal(SIGSEGV, SIG_DFL);  // a sanitizer's, in builds with one
                  raise(SIGSEGV);
                  return Known();
                }),
                "SIGSEGV");
}

TEST(SymbolizerProcessTest, AFileThatShrinksWhileItIsMappedCostsTheNames) {
  char name[] = "/tmp/memtrace-shrinks.XXXXXX";
  const int fd = mkstemp(name);
  ASSERT_GE(fd, 0);
  unlink(name);
  ASSERT_EQ(ftruncate(fd, 8192), 0);
  auto* bytes = static_cast<volatile char*>(mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE, fd, 0));
  ExpectNoNames(ResultOf([&](const Module&, std::span<const Address>) {
                  signal(SIGBUS, SIG_DFL);
                  EXPECT_EQ(ftruncate(fd, 0), 0);
                  ModuleResult result = Known();
                  result.frames[0][0].line = static_cast<uint32_t>(bytes[5000]);
                  return result;
                }),
                "SIGBUS");
  munmap(const_cast<char*>(bytes), 8192);
  close(fd);
}

TEST(SymbolizerProcessTest, WhoeverTakesTooLongIsEnded) {
  SymbolizerProcess::Limits limits;
  limits.module = std::chrono::milliseconds(200);
  ExpectNoNames(ResultOf([](const Module&, std::span<const Address>) -> ModuleResult {
                  for (;;) pause();  // as when a pipe is opened that nobody writes to
                }, limits),
                "took too long");
}

TEST(SymbolizerProcessTest, TheTimeOfAllModulesIsLimited) {
  SymbolizerProcess::Limits limits;
  limits.all = std::chrono::milliseconds(200);
  SymbolizerProcess process({}, limits);
  process.ReplaceWorkForTesting([](const Module&, std::span<const Address>) -> ModuleResult {
    for (;;) pause();
  });
  ExpectNoNames(process.Symbolize(kModule, kAddresses), "took too long");
  ExpectNoNames(process.Symbolize(kModule, kAddresses), "the modules before it took too long");
}

TEST(SymbolizerProcessTest, ALackOfMemoryCostsTheNames) {
  ExpectNoNames(ResultOf([](const Module&, std::span<const Address>) -> ModuleResult {
                  throw std::bad_alloc();
                }),
                "not enough memory");
}

TEST(SymbolizerProcessTest, AnAnswerWithoutEndIsNotAwaited) {
  SymbolizerProcess::Limits limits;
  limits.answer_bytes = 1000;
  ExpectNoNames(ResultOf([](const Module&, std::span<const Address>) {
                  ModuleResult result = Known();
                  result.message.assign(100'000, 'x');
                  return result;
                }, limits),
                "too many names");
}

TEST(SymbolizerProcessTest, BytesThatAreNoAnswerCostTheNamesAndSaySo) {
  for (const bool by_server : {false, true}) {
    SymbolizerProcess process({});
    process.ReplaceWorkForTesting([](const Module&, std::span<const Address>) {
      ModuleResult result = Known();
      result.frames.pop_back();  // of another question
      return result;
    });
    if (by_server) process.StartForkServer();
    ExpectNoNames(process.Symbolize(kModule, kAddresses),
                  "no answer from the process that reads it");
  }
}

TEST(SymbolizerProcessTest, AModuleWithoutAFileCostsNoProcess) {
  const Module missing = {.path = "/nowhere/module.so", .build_id = std::string(20, 'x')};
  SymbolizerProcess process({});
  process.ReplaceWorkForTesting([](const Module&, std::span<const Address>) { return Known(); });
  const ModuleResult result = process.Symbolize(missing, kAddresses);
  EXPECT_EQ(result.state, ModuleState::kNotFound) << "nobody was asked";
  EXPECT_EQ(result.message, "/nowhere/module.so: No such file or directory");
  EXPECT_EQ(result.frames.size(), kAddresses.size());
  // What the search itself says, and what it looked at.
  const ModuleResult searched = Symbolizer({}).Symbolize(missing, kAddresses);
  EXPECT_EQ(searched.state, result.state);
  EXPECT_EQ(searched.message, result.message);
  EXPECT_EQ(searched.files, result.files);
}

TEST(SymbolizerProcessTest, TheNumberOfModulesIsLimited) {
  SymbolizerProcess::Limits limits;
  limits.modules = 2;
  SymbolizerProcess process({}, limits);
  process.ReplaceWorkForTesting([](const Module&, std::span<const Address>) { return Known(); });
  ExpectKnown(process.Symbolize(kModule, kAddresses));
  ExpectKnown(process.Symbolize(kModule, kAddresses));
  ExpectNoNames(process.Symbolize(kModule, kAddresses), "too many modules");
}

// Its working directory is that of its begin, from which its children see files.
TEST(SymbolizerProcessTest, ItsServerReadsTheFilesOfAllQuestions) {
  const FixtureProgram fixture("gcc");
  const std::filesystem::path path = fixture.path(), before = std::filesystem::current_path();
  SymbolizerProcess process({});
  std::filesystem::current_path("/");
  process.StartForkServer();
  std::filesystem::current_path(path.parent_path());
  const Module module = {.path = "/proc/self/cwd/" + path.filename().string()};
  const std::string_view names[] = {"_ZN4shop"};
  const VariableQuery queries[] = {{0, false}};
  EXPECT_TRUE(process.FindNamedFunctions(module, names).empty());
  EXPECT_EQ(process.FindFootprint(module).state, ModuleState::kNotFound);
  EXPECT_THAT(process.FindVariables(module, queries).message, HasSubstr("No such file"));
  SymbolizerProcess without_server({});
  EXPECT_FALSE(without_server.FindNamedFunctions(module, names).empty());
  EXPECT_EQ(without_server.FindFootprint(module).state, ModuleState::kDebugInfo);
  EXPECT_EQ(without_server.FindVariables(module, queries).message, "");
  std::filesystem::current_path(before);
}

size_t OpenDescriptors() {
  size_t count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

TEST(SymbolizerProcessTest, LeavesNoProcessAndNoDescriptor) {
  const size_t before = OpenDescriptors();
  SymbolizerProcess::Limits limits;
  limits.module = std::chrono::milliseconds(50);
  ResultOf([](const Module&, std::span<const Address>) -> ModuleResult { for (;;) pause(); }, limits);
  ResultOf([](const Module&, std::span<const Address>) { return Known(); });
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

// The path of a module may be anything that an open() can be made to wait for, or harm.
TEST(SymbolizerProcessTest, OpensNothingButRegularFiles) {
  const std::string fifo = "/tmp/memtrace-fifo." + std::to_string(getpid());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, std::string("/dev/zero"), std::string("/dev/tty"),
                                  std::string("/"), std::string("/dev/stdin")}) {
    const ModuleResult result = SymbolizerProcess({}).Symbolize({.path = path}, kAddresses);
    EXPECT_NE(result.state, ModuleState::kDebugInfo) << path;
    EXPECT_THAT(result.message, ::testing::AnyOf(HasSubstr("not a regular file"),
                                                 HasSubstr("No such"))) << path;
  }
  unlink(fifo.c_str());
}

TEST(SymbolizerProcessTest, ShowsNothingOfAFileThatIsNoModule) {
  const std::string path = "/tmp/memtrace-secret." + std::to_string(getpid());
  FILE* file = fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  fputs("root:a-secret-hash:19000:0:99999:7:::\n", file);
  fclose(file);
  const ModuleResult result = SymbolizerProcess({}).Symbolize({.path = path}, kAddresses);
  EXPECT_EQ(result.state, ModuleState::kUnreadable);
  EXPECT_THAT(result.message, ::testing::Not(HasSubstr("secret-hash")));
  for (const auto& frames : result.frames) EXPECT_TRUE(frames.empty());
  unlink(path.c_str());
}

TEST(ModuleAnswerTest, AnyBytesAreRead) {
  const std::string good = EncodeAnswer(Known());
  ModuleResult result;
  ASSERT_TRUE(DecodeAnswer(good, 2, &result));
  ExpectKnown(result);
  EXPECT_FALSE(DecodeAnswer(good, 3, &result)) << "of another question";
  EXPECT_FALSE(DecodeAnswer(good + "x", 2, &result));
  for (size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_FALSE(DecodeAnswer(good.substr(0, cut), 2, &result)) << cut;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char byte : {'\xff', '\x7f', '\0', '\1'}) {
      std::string bad = good;
      bad[at] = byte;
      DecodeAnswer(bad, 2, &result);
    }
  }
}

TEST(ModuleAnswerTest, NamesOfAnyLengthAreCut) {
  ModuleResult long_names = Known();
  long_names.frames[0][0].function.assign(1'000'000, 'f');
  long_names.frames[0][0].linkage_name.assign(kMaxNameBytes, 'l');
  long_names.frames[0][1].linkage_name.assign(kMaxNameBytes + 1, 'l');
  long_names.frames[0][1].file.assign(kMaxNameBytes + 1, 'a');
  const std::string bytes = EncodeAnswer(long_names);
  EXPECT_LT(bytes.size(), 4 * kMaxNameBytes);
  ModuleResult result;
  ASSERT_TRUE(DecodeAnswer(bytes, 2, &result));
  const Frame& frame = result.frames.at(0).at(0);
  EXPECT_EQ(frame.function, std::string(kMaxNameBytes - 3, 'f') + "...");
  EXPECT_EQ(frame.linkage_name, long_names.frames[0][0].linkage_name);
  const Frame& outer = result.frames.at(0).at(1);
  EXPECT_EQ(outer.linkage_name, "") << "a part of it is another name";
  EXPECT_EQ(outer.file, std::string(kMaxNameBytes - 3, 'a') + "...");
  EXPECT_EQ(outer.line, 9u);
}

// Of one address with so many frames, which all have one name.
std::string AnswerOf(size_t name_bytes, size_t frames) {
  std::string bytes;
  Put(static_cast<uint32_t>(ModuleState::kDebugInfo), &bytes);
  for (int i = 0; i < 3; ++i) Put("", &bytes);  // message, missed, debug_file
  Put(1, &bytes);
  Put(std::string(name_bytes, 'n'), &bytes);
  Put(1, &bytes);
  Put(static_cast<uint32_t>(frames), &bytes);
  bytes.append(frames * 5 * sizeof(uint32_t), '\0');
  Put(0, &bytes);  // files
  return bytes;
}

// A few bytes that would be many in the process that asked.
TEST(ModuleAnswerTest, WhatWouldBeTooLargeIsRefused) {
  ModuleResult result;
  ASSERT_TRUE(DecodeAnswer(AnswerOf(kMaxNameBytes, 2), 1, &result));
  EXPECT_EQ(result.frames.at(0).at(1).file, std::string(kMaxNameBytes, 'n'));
  EXPECT_FALSE(DecodeAnswer(AnswerOf(kMaxNameBytes + 1, 2), 1, &result));
  EXPECT_FALSE(
      DecodeAnswer(AnswerOf(kMaxNameBytes, kMostTextBytes / (3 * kMaxNameBytes) + 1), 1, &result));
}

}  // namespace
}  // namespace memtrace::symbolizer
