// What the launcher finds out about a program before it runs it, and the names
// it gives: searched, followed, judged from bytes on disk alone.

#include <elf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "report/base/unique_fd.h"
#include "report/run/elf_facts.h"
#include "report/run/library_finder.h"
#include "report/run/output_name.h"
#include "report/run/preflight.h"
#include "report/run/program_search.h"
#include "report/run/spool_directory.h"
#include "report/trace/byte_source.h"
#include "report/trace/run_record.h"
#include "tests/files.h"
#include "tests/report/run/run_raw_trace.h"

namespace memtrace::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Contains;
using ::testing::StartsWith;

absl::StatusOr<ElfFacts> FactsOf(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(fd.ok()) << path;
  return ReadElfFacts(fd.get());
}

// Stands for libmemtrace.so: of the class and machine of the tools here.
ElfFacts LibraryFacts() { return *FactsOf("/proc/self/exe"); }

std::string Message(const std::optional<Refusal>& refusal) {
  return refusal ? refusal->message : "(traceable)";
}

// The smallest things that are ELF by their header.
std::string ElfHeader(int elf_class, uint16_t machine) {
  Elf64_Ehdr header = {};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = static_cast<unsigned char>(elf_class);
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_EXEC;
  header.e_machine = machine;
  return std::string(reinterpret_cast<char*>(&header), sizeof(header));
}

TEST(ElfFactsTest, ReadsADynamicProgram) {
  const auto facts = FactsOf("/proc/self/exe");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE(facts->dynamic);
  EXPECT_THAT(facts->interpreter, HasSubstr("ld-linux"));
  EXPECT_THAT(facts->needed, Contains("libc.so.6"));
  EXPECT_EQ(facts->soname, "");
}

TEST(ElfFactsTest, KnowsTheDynamicLoaderFromAStaticProgram) {
  const auto loader = FactsOf(FactsOf("/proc/self/exe")->interpreter);
  ASSERT_TRUE(loader.ok());
  EXPECT_TRUE(loader->is_dynamic_loader());
  const auto program = FactsOf(RUN_STATIC_PROGRAM);
  ASSERT_TRUE(program.ok());
  EXPECT_FALSE(program->is_dynamic_loader());
}

TEST(ElfFactsTest, FindsTheSanitizerOfASharedAndOfAStaticRuntime) {
  EXPECT_EQ(FactsOf(RUN_ASAN_PROGRAM)->sanitizer, "AddressSanitizer");
  EXPECT_EQ(FactsOf(RUN_STATIC_ASAN_PROGRAM)->sanitizer, "AddressSanitizer");
#ifdef __clang__  // whose runtime's names are dynamic ones, which stay
  EXPECT_EQ(FactsOf(RUN_STRIPPED_ASAN_PROGRAM)->sanitizer, "AddressSanitizer");
#else
  EXPECT_EQ(FactsOf(RUN_STRIPPED_ASAN_PROGRAM)->sanitizer, "a sanitizer");
#endif
  EXPECT_EQ(FactsOf(RUN_TSAN_PROGRAM)->sanitizer, "ThreadSanitizer");
  EXPECT_EQ(FactsOf("/bin/sh")->sanitizer, "");
}

TEST(ElfFactsTest, SurvivesEveryCutOfAProgram) {
  TempDir directory;
  const std::string whole = ReadFile(RUN_DYNAMIC_PROGRAM);
  for (size_t cut = 0; cut < whole.size(); cut += cut < 1024 ? 1 : 61) {
    WriteFile(directory / "cut", whole.substr(0, cut));
    EXPECT_FALSE(FactsOf(directory / "cut").ok() && cut < sizeof(Elf64_Ehdr)) << cut;
  }
}

TEST(ElfFactsTest, SurvivesDamagedPrograms) {
  TempDir directory;
  const std::string whole = ReadFile(RUN_STATIC_ASAN_PROGRAM).substr(0, 128 << 10);
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = whole;
    // Mostly the headers, where a wrong number leads somewhere.
    for (int i = 0; i < 8; ++i) {
      const size_t at = random() % (i % 2 ? 1024 : damaged.size());
      damaged[at] = static_cast<char>(random() % 3 ? random() : 0xff);
    }
    memcpy(damaged.data(), ELFMAG, SELFMAG);
    damaged[EI_CLASS] = ELFCLASS64;
    damaged[EI_DATA] = ELFDATA2LSB;
    WriteFile(directory / "damaged", damaged);
    const absl::StatusOr<ElfFacts> facts = FactsOf(directory / "damaged");
    EXPECT_TRUE(facts.ok() ? facts->readable_here() : absl::IsDataLoss(facts.status())) << facts.status();
  }
}

TEST(ProgramSearchTest, SearchesThePathAsExecvpDoes) {
  TempDir directory;
  for (const char* name : {"a", "b", "c"}) std::filesystem::create_directory(directory / name);
  WriteFile(directory / "a/tool", "");
  WriteProgram(directory / "b/tool", "");
  std::filesystem::create_directory(directory / "c/tool");
  const std::string a = directory / "a", b = directory / "b", c = directory / "c";
  EXPECT_EQ(FindProgram("tool", (a + ":" + b).c_str()).path, b + "/tool");
  EXPECT_EQ(FindProgram("tool", (c + ":" + b).c_str()).path, b + "/tool") << "not a directory";
  EXPECT_EQ(FindProgram("tool", a.c_str()).error, EACCES);
  EXPECT_EQ(FindProgram("tool", (a + ":/nonexistent").c_str()).error, EACCES);
  EXPECT_EQ(FindProgram("tool", "/nonexistent").error, ENOENT);
  EXPECT_EQ(FindProgram("", a.c_str()).error, ENOENT);
  EXPECT_EQ(FindProgram("sh", nullptr).path, "/bin/sh") << "PATH is not set";
  EXPECT_EQ(FindProgram(b + "/tool", nullptr).path, b + "/tool");
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(b);
  EXPECT_EQ(FindProgram("tool", "").path, "./tool");
  EXPECT_EQ(FindProgram("tool", (a + ":").c_str()).path, "./tool");
  EXPECT_EQ(FindProgram("./tool", "").path, "./tool");
  std::filesystem::current_path(before);
}

TEST(PreflightTest, ExplainsWhatIsNotThereLikeAShell) {
  TempDir directory;
  WriteFile(directory / "plain", "");
  EXPECT_EQ(ExplainNotFound("nosuch", ENOENT).exit_status, 127);
  EXPECT_THAT(ExplainNotFound("nosuch", ENOENT).message, HasSubstr("not found in PATH"));
  EXPECT_EQ(ExplainNotFound("./nosuch", ENOENT).exit_status, 127);
  EXPECT_EQ(ExplainNotFound(directory / "plain", EACCES).exit_status, 126);
  EXPECT_THAT(ExplainNotFound(directory / "plain", EACCES).message, HasSubstr("chmod +x"));
  EXPECT_EQ(ExplainNotFound(directory.path(), EACCES).exit_status, 126);
  EXPECT_THAT(ExplainNotFound(directory.path(), EACCES).message, HasSubstr("is a directory"));
}

TEST(PreflightTest, LetsAnOrdinaryProgramPass) {
  EXPECT_EQ(Message(CheckTraceable(RUN_DYNAMIC_PROGRAM, LibraryFacts())), "(traceable)");
  EXPECT_EQ(Message(CheckTraceable("/bin/sh", LibraryFacts())), "(traceable)");
  EXPECT_EQ(Message(CheckTraceable(FactsOf("/bin/sh")->interpreter, LibraryFacts())),
            "(traceable)") << "ld.so PROGRAM preloads like any other";
}

TEST(PreflightTest, RefusesAStaticProgram) {
  const auto refusal = CheckTraceable(RUN_STATIC_PROGRAM, LibraryFacts());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->exit_status, 2);
  EXPECT_THAT(refusal->message, HasSubstr("statically linked"));
  EXPECT_THAT(Message(CheckTraceable(RUN_STATIC_PIE_PROGRAM, LibraryFacts())),
              HasSubstr("statically linked"));
}

TEST(PreflightTest, RefusesSanitizers) {
  EXPECT_THAT(Message(CheckTraceable(RUN_ASAN_PROGRAM, LibraryFacts())),
              HasSubstr("AddressSanitizer"));
  EXPECT_THAT(Message(CheckTraceable(RUN_TSAN_PROGRAM, LibraryFacts())),
              HasSubstr("ThreadSanitizer"));
  EXPECT_THAT(Message(CheckPreloaded("/x/libfoo.so:/usr/lib/libasan.so.8")),
              HasSubstr("/usr/lib/libasan.so.8"));
  EXPECT_EQ(Message(CheckPreloaded("/x/libfoo.so /x/libmemtrace.so")), "(traceable)");
  EXPECT_EQ(Message(CheckPreloaded(nullptr)), "(traceable)");
}

TEST(PreflightTest, RefusesOtherMachines) {
  TempDir directory;
  ElfFacts library = LibraryFacts();
  library.machine = EM_X86_64;
  WriteProgram(directory / "i386", ElfHeader(ELFCLASS32, EM_386));
  EXPECT_THAT(Message(CheckTraceable(directory / "i386", library)),
              HasSubstr("it is a 32-bit program, and there is a libmemtrace.so for 64-bit ones "
                        "only; build it for x86-64"));
  WriteProgram(directory / "arm", ElfHeader(ELFCLASS64, EM_AARCH64));
  EXPECT_THAT(Message(CheckTraceable(directory / "arm", library)),
              HasSubstr("it is for ARM64 and this libmemtrace.so is for x86-64"));
  WriteProgram(directory / "odd", ElfHeader(ELFCLASS64, 4711));
  EXPECT_THAT(Message(CheckTraceable(directory / "odd", library)), HasSubstr("machine 4711"));
  WriteProgram(directory / "damaged", ElfHeader(255, 0xffff));
  EXPECT_THAT(Message(CheckTraceable(directory / "damaged", library)),
              HasSubstr("damaged ELF file, of no known word size"));
}

TEST(PreflightTest, RefusesWhatIsElfButNoProgram) {
  EXPECT_THAT(Message(CheckTraceable(RUN_SHARED_LIBRARY, LibraryFacts())),
              HasSubstr("shared library"));
  TempDir directory;
  std::string object = ReadFile(RUN_DYNAMIC_PROGRAM);
  object[offsetof(Elf64_Ehdr, e_type)] = ET_REL;
  WriteProgram(directory / "x.o", object);
  EXPECT_THAT(Message(CheckTraceable(directory / "x.o", LibraryFacts())), HasSubstr("no program"));
}

// A dynamic program whose interpreter is another one; `name` is not longer than its own.
std::string WithInterpreter(const std::string& name) {
  std::string program = ReadFile(RUN_DYNAMIC_PROGRAM);
  const std::string old = FactsOf(RUN_DYNAMIC_PROGRAM)->interpreter;
  EXPECT_LE(name.size(), old.size());
  const size_t at = program.find(old);
  EXPECT_NE(at, program.npos);
  std::string padded = name;
  padded.resize(old.size());
  program.replace(at, old.size(), padded);
  return program;
}

TEST(PreflightTest, RefusesMuslAndAMissingLoader) {
  TempDir directory;
  WriteProgram(directory / "musl", WithInterpreter("/lib/ld-musl-x86_64.so.1"));
  EXPECT_THAT(Message(CheckTraceable(directory / "musl", LibraryFacts())), HasSubstr("musl"));
  WriteProgram(directory / "lost", WithInterpreter("/lib/ld-lost.so"));
  const auto refusal = CheckTraceable(directory / "lost", LibraryFacts());
  EXPECT_THAT(Message(refusal), HasSubstr("its loader /lib/ld-lost.so is missing"));
  EXPECT_EQ(refusal->exit_status, 2);
}

TEST(PreflightTest, FollowsScriptsToTheirInterpreter) {
  TempDir directory;
  WriteProgram(directory / "good", "#! /bin/sh -e\nexit 0\n");
  EXPECT_EQ(Message(CheckTraceable(directory / "good", LibraryFacts())), "(traceable)");
  WriteProgram(directory / "plain", "echo no first line\n");
  EXPECT_EQ(Message(CheckTraceable(directory / "plain", LibraryFacts())), "(traceable)");
  WriteProgram(directory / "empty", "");
  EXPECT_EQ(Message(CheckTraceable(directory / "empty", LibraryFacts())), "(traceable)");

  WriteProgram(directory / "lost", "#!/no/such/interpreter -x\n");
  const auto refusal = CheckTraceable(directory / "lost", LibraryFacts());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->exit_status, 2);
  EXPECT_THAT(refusal->message, HasSubstr("its interpreter /no/such/interpreter is missing"));
  WriteProgram(directory / "dos", "#!/bin/sh\r\n");
  EXPECT_THAT(Message(CheckTraceable(directory / "dos", LibraryFacts())), HasSubstr("is missing"));
  WriteProgram(directory / "none", "#!\n");
  EXPECT_THAT(Message(CheckTraceable(directory / "none", LibraryFacts())),
              HasSubstr("names no interpreter"));
  WriteProgram(directory / "static", std::string("#!") + RUN_STATIC_PROGRAM + "\n");
  EXPECT_THAT(Message(CheckTraceable(directory / "static", LibraryFacts())),
              HasSubstr("statically linked"));
  WriteProgram(directory / "loop", "#!" + (directory / "loop") + "\n");
  EXPECT_THAT(Message(CheckTraceable(directory / "loop", LibraryFacts())),
              HasSubstr("too many interpreters"));
}

TEST(PreflightTest, RefusesSecureExecutionOnlyWhereItIsOne) {
  if (geteuid() != 0) GTEST_SKIP() << "giving a file to another user needs root";
  TempDir directory;
  std::filesystem::copy_file(RUN_DYNAMIC_PROGRAM, directory / "program");
  const std::string program = directory / "program";
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);
  EXPECT_EQ(Message(CheckTraceable(program, LibraryFacts())), "(traceable)") << "root already";
  ASSERT_EQ(chown(program.c_str(), 65534, 0), 0);
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);
  const auto refusal = CheckTraceable(program, LibraryFacts());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->exit_status, 2);
  EXPECT_THAT(refusal->message, HasSubstr("it is setuid"));
  ASSERT_EQ(chown(program.c_str(), 0, 65534), 0);
  ASSERT_EQ(chmod(program.c_str(), 02755), 0);
  EXPECT_THAT(Message(CheckTraceable(program, LibraryFacts())), HasSubstr("it is setgid"));
  ASSERT_EQ(chmod(program.c_str(), 02745), 0);
  EXPECT_EQ(Message(CheckTraceable(program, LibraryFacts())), "(traceable)")
      << "without the group's x it is not setgid";
}

TEST(OutputNameTest, Expands) {
  const OutputFields fields = {"sort", 42, 99};
  EXPECT_EQ(ExpandOutputName("memtrace.%e.%p.mtr", fields), "memtrace.sort.42.mtr");
  EXPECT_EQ(ExpandOutputName("%t-%%-%x-%", fields), "99-%-%x-%");
  EXPECT_EQ(ExpandOutputName("memtrace.%e.%p.mtr", {"sort", 0, 99}), "memtrace.sort.mtr");
}

TEST(OutputNameTest, PutsChildrenBesideTheirParent) {
  EXPECT_EQ(ExpandOutputName("%e.mtr", {std::string(250, 'x'), 1, 9}), std::string(128, 'x') + ".mtr");
  EXPECT_EQ(ExpandOutputName("%e.mtr", {std::string(127, 'x') + "\u00f6", 1, 9}), std::string(127, 'x') + ".mtr")
      << "not within a letter";
  EXPECT_EQ(ChildOutputName("out.mtr", "ls", 7), "out.ls.7.mtr");
  EXPECT_EQ(ChildOutputName("/a.b/out", "ls", 7), "/a.b/out.ls.7");
  EXPECT_EQ(ChildOutputName("d/.hidden", "ls", 7), "d/.hidden.ls.7");
  // With room for the number of another of the same name.
  const std::string umlauts = "d/" + std::string(233, 'x') + "\u00f6\u00f6\u00f6\u00f6\u00f6.mtr";
  EXPECT_EQ(ChildOutputName(umlauts, "ls", 12345), "d/" + std::string(233, 'x') + "\u00f6.ls.12345.mtr");
  EXPECT_EQ(NumberedName("out.mtr", 2), "out.2.mtr");
  EXPECT_EQ(NumberedName("out.mtr", 0), "out.mtr");
  EXPECT_EQ(Basename("/a/b"), "b");
  EXPECT_EQ(Basename("/a/b/"), "b");
  EXPECT_EQ(Basename("b"), "b");
}

TEST(OutputNameTest, NeverReplacesWhatIsThere) {
  TempDir directory;
  for (int i = 0; i < 3; ++i) {
    WriteFile(directory / "from", std::to_string(i));
    EXPECT_EQ(*RenameWithoutReplacing(directory / "from", directory / "to.mtr"),
              NumberedName(directory / "to.mtr", i));
  }
  EXPECT_EQ(ReadFile(directory / "to.mtr"), "0");
  EXPECT_EQ(ReadFile(directory / "to.2.mtr"), "2");
  EXPECT_FALSE(RenameWithoutReplacing(directory / "missing", directory / "x").ok());
}

TEST(SpoolDirectoryTest, IsPrivateHiddenAndGoneAfterwards) {
  TempDir directory;
  const auto spool = SpoolDirectory::Create(directory / "out.mtr");
  ASSERT_TRUE(spool.ok()) << spool.status();
  struct stat info;
  ASSERT_EQ(stat(spool->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_THAT(spool->path(), StartsWith(directory / ".out.mtr.spool."));
  ASSERT_TRUE(spool->WriteRunRecord({"/x/out\n.mtr", 42}).ok());
  const auto record = spool->ReadRunRecord();
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->root_pid, 42u);
  EXPECT_EQ(record->output, "/x/out\n.mtr");
  WriteFile(spool->path() + "/a.1.2.mtr", "x");
  EXPECT_THAT(spool->RawTraces(), ElementsAre(spool->path() + "/a.1.2.mtr"));
  EXPECT_FALSE(spool->RemoveIfEmpty());
  EXPECT_TRUE(spool->ReadRunRecord().ok()) << "still needed";
  unlink((spool->path() + "/a.1.2.mtr").c_str());
  EXPECT_TRUE(spool->RemoveIfEmpty());
  EXPECT_TRUE(FilesIn(directory).empty());
}

// Until then it is hidden.
TEST(SpoolDirectoryTest, IsNamedWhereTheTraceThatItIsForIsNotThere) {
  TempDir directory;
  const auto spool = SpoolDirectory::Create(directory / "out.mtr");
  ASSERT_TRUE(spool.ok()) << spool.status();
  const std::string trace = directory / "out.42.mtr";
  const auto message = [&] { return std::string(FileSource::Open(trace).status().message()); };
  const std::string missing = absl::StrCat("cannot open ", trace, ": No such file or directory");
  EXPECT_EQ(message(), missing) << "there is no record of a run yet";
  ASSERT_TRUE(spool->WriteRunRecord({"out.42.mtr", 0}).ok());
  const std::string finish =
      absl::StrCat("and when the program has ended and the file is still missing: memtrace run "
                   "--finish ", spool->path());
  const std::string whose = "; the run that writes it goes on, or was interrupted: ";
  EXPECT_EQ(message(), absl::StrCat(missing, whose, finish));
  ASSERT_TRUE(spool->WriteRunRecord({trace, 42}).ok());
  WriteFile(spool->path() + "/a.42.2.mtr", "x");
  EXPECT_EQ(message(),
            absl::StrCat(missing, whose, "memtrace leaks 42 asks the program if it still runs, ",
                         "memtrace report ", spool->path(),
                         "/*.mtr shows what is not packed yet, ", finish));
  EXPECT_EQ(WhoWrites(directory / "out.mtr"), "") << "another trace";
  WriteFile(spool->path() + "/RUN", "damaged");
  EXPECT_EQ(message(), missing);
}

TEST(SpoolDirectoryTest, IsRemovedWhereThereIsNoDescriptorForItsRecord) {
  TempDir directory;
  const auto spool = SpoolDirectory::Create(directory / "out.mtr");
  ASSERT_TRUE(spool.ok()) << spool.status();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status written = spool->WriteRunRecord({"/x/out.mtr", 42});
  const bool removed = spool->RemoveIfEmpty();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(std::string(written.message()), HasSubstr("Too many open files"));
  EXPECT_TRUE(removed);
  EXPECT_TRUE(FilesIn(directory).empty());
}

TEST(SpoolDirectoryTest, SaysWhyItCannotBe) {
  TempDir directory;
  WriteFile(directory / "file", "");
  EXPECT_THAT(std::string(SpoolDirectory::Create(directory / "file/out.mtr").status().message()),
              HasSubstr("Not a directory"));
  EXPECT_THAT(std::string(SpoolDirectory::Create(directory / "no/out.mtr").status().message()),
              HasSubstr("No such file or directory"));
  EXPECT_FALSE(SpoolDirectory::Open(directory / "file").ok());
  EXPECT_THAT(std::string(SpoolDirectory::Open(directory.path())->ReadRunRecord().status().message()),
              HasSubstr("it has no file RUN"));
}

TEST(SpoolDirectoryTest, DoublesThePercentSignsOfItsPath) {
  TempDir directory;
  std::filesystem::create_directory(directory / "100%p");
  const auto spool = SpoolDirectory::Create(directory / "100%p/out.mtr");
  EXPECT_THAT(spool->OutPattern(), HasSubstr("/100%%p/"));
  EXPECT_THAT(spool->OutPattern(), ::testing::EndsWith("/%e.%p.%t.mtr"));
}

TEST(SpoolDirectoryTest, IsToldFromOthersOfLikeNames) {
  TempDir directory;
  const auto spool = SpoolDirectory::Create(directory / "out.mtr");
  ASSERT_TRUE(spool.ok()) << spool.status();
  EXPECT_FALSE(IsInSpool(spool->path() + "/a.1.2.mtr")) << "no run made it";
  ASSERT_TRUE(spool->WriteRunRecord({"/x/out.mtr", 42}).ok());
  EXPECT_TRUE(IsInSpool(spool->path() + "/a.1.2.mtr"));
  for (const char* const name : {"x.spool.d", ".spool"}) {
    std::filesystem::create_directory(directory / name);
    WriteFile(directory / name + "/RUN", "42\n/x/out.mtr\n");
    EXPECT_FALSE(IsInSpool(directory / name + "/a.1.2.mtr")) << name;
  }
}

TEST(LibraryFinderTest, RefusesWhatLdSoCannotPreload) {
  TempDir directory;
  EXPECT_THAT(std::string(FindPreloadLibrary(directory / "none.so").status().message()),
              HasSubstr("No such file or directory"));
  WriteFile(directory / "text.so", "text");
  EXPECT_THAT(std::string(FindPreloadLibrary(directory / "text.so").status().message()),
              HasSubstr("is no shared library"));
  std::filesystem::copy_file(RUN_SHARED_LIBRARY, directory / "a b.so");
  EXPECT_THAT(std::string(FindPreloadLibrary(directory / "a b.so").status().message()),
              HasSubstr("a space"));
  std::filesystem::copy_file(RUN_SHARED_LIBRARY, directory / "good.so");
  std::filesystem::create_symlink(directory / "good.so", directory / "link.so");
  const auto library = FindPreloadLibrary(directory / "link.so");
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_THAT(library->path, ::testing::EndsWith("/good.so"));
}

}  // namespace
}  // namespace memtrace::report
