// The baseline file: what it says, what it refuses, and that an update is a small difference.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "report/gate/baseline.h"
#include "report/gate/baseline_file.h"
#include "report/leak/leak_kinds.h"
#include "tests/files.h"
#include "tests/temp_dir.h"

namespace memtrace::report::gate {
namespace {

using ::testing::HasSubstr;

constexpr char kText[] =
    "# a project's leaks\n"
    "\n"
    "# BUG-1: the cache\n"
    "definite 000000000000aaaa bytes=48 blocks=3 until=2027-01-31 program=app caller=Load(char const*)  a.cc\n"
    "possible 000000000000bbbb bytes=10 blocks=1 program=app caller=Two\n"
    "\n"
    "# of another test\n"
    "definite 000000000000cccc bytes=7 blocks=1 program=other%20one caller=Three\n";

const LeakKindSet kDefinite = LeakKindSet::Of(LeakKind::kDefinite);

BaselineEntry Leak(LeakKind kind, std::string fingerprint, uint64_t bytes, uint64_t blocks,
                   std::string program, std::string caller) {
  return {.kind = kind, .fingerprint = std::move(fingerprint), .bytes = bytes, .blocks = blocks,
          .lost = {}, .until = "", .program = std::move(program), .caller = std::move(caller), .line = 0};
}

Baseline Parsed(absl::string_view text) {
  auto baseline = Baseline::Parse(text, "known");
  EXPECT_TRUE(baseline.ok()) << baseline.status();
  return baseline.ok() ? *std::move(baseline) : Baseline();
}

TEST(BaselineTest, HasWhatItsLinesSay) {
  const Baseline baseline = Parsed(kText);
  ASSERT_EQ(baseline.entries().size(), 3u);
  const BaselineEntry* entry = baseline.Find(LeakKind::kDefinite, "000000000000aaaa", "app");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->bytes, 48u);
  EXPECT_EQ(entry->blocks, 3u);
  EXPECT_EQ(entry->until, "2027-01-31");
  EXPECT_EQ(entry->caller, "Load(char const*)  a.cc");
  EXPECT_EQ(entry->line, 4u);
  EXPECT_EQ(baseline.Find(LeakKind::kPossible, "000000000000aaaa", "app"), nullptr);
  EXPECT_EQ(baseline.Find(LeakKind::kDefinite, "000000000000aaaa", "other one"), nullptr);
  EXPECT_NE(baseline.Find(LeakKind::kDefinite, "000000000000cccc", "other one"), nullptr);
}

TEST(BaselineTest, MaySayWhatIsLostInAll) {
  const std::string line = "definite 00000000000000aa bytes=1 blocks=1 lost_bytes=30 lost_blocks=3 program=app caller=F";
  const Baseline baseline = Parsed(line + "\n");
  const BaselineEntry* entry = baseline.Find(LeakKind::kDefinite, "00000000000000aa", "app");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->lost.bytes, 30u);
  EXPECT_EQ(entry->lost.blocks, 3u);
  EXPECT_EQ(BaselineLine(*entry), line);
  BaselineEntry now = *entry;
  EXPECT_EQ(baseline.Update({now}, {"app"}, kDefinite), line + "\n");
  now.lost.blocks = 4;
  EXPECT_THAT(baseline.Update({now}, {"app"}, kDefinite), HasSubstr("lost_blocks=4"));
  EXPECT_FALSE(Baseline::Parse("definite 00000000000000aa bytes=1 blocks=1 lost_bytes=30 program=app\n", "known").ok());
}

TEST(BaselineTest, AnEntryMayBeOfAnyProgram) {
  const Baseline baseline = Parsed("definite 00000000000000aa bytes=1 blocks=1 program=*\n"
                                   "definite 00000000000000aa bytes=2 blocks=1 program=app\n");
  EXPECT_EQ(baseline.Find(LeakKind::kDefinite, "00000000000000aa", "app")->bytes, 2u);
  EXPECT_EQ(baseline.Find(LeakKind::kDefinite, "00000000000000aa", "else")->bytes, 1u);
}

TEST(BaselineTest, ErrorsNameFileAndLine) {
  const auto message = [](absl::string_view text) {
    return std::string(Baseline::Parse(text, "known").status().message());
  };
  EXPECT_THAT(message("# c\nlost 00000000000000aa bytes=1 blocks=1 program=p"), HasSubstr("known:2: \"lost\""));
  EXPECT_THAT(message("definite ../x bytes=1 blocks=1 program=p"), HasSubstr("no fingerprint"));
  EXPECT_THAT(message("definite 12 bytes=1 blocks=1 program=p"), HasSubstr("\"12\" is no fingerprint, which is 16 "));
  EXPECT_THAT(message("definite 00000000000000aa0 bytes=1 blocks=1 program=p"), HasSubstr("no fingerprint"));
  EXPECT_THAT(message("definite 00000000000000aa bytes=1 program=p"), HasSubstr("needs bytes=, blocks="));
  EXPECT_THAT(message("definite 00000000000000aa bytes=1 blocks=-1 program=p"), HasSubstr("not a number"));
  EXPECT_THAT(message("definite 00000000000000aa bytes=1 blocks=1 until=soon program=p"), HasSubstr("not a date"));
  EXPECT_THAT(message("definite 00000000000000aa bytes=1 blocks=1 until=2027-02-31 program=p"), HasSubstr("not a date"));
  EXPECT_THAT(message("definite 00000000000000aa bytes=1 blocks=1 program=p caller=mk until=2020-01-01  a.c"),
              HasSubstr("is a part of caller="));
  EXPECT_THAT(message("definite 00000000000000AA bytes=1 blocks=1 program=p"), HasSubstr("no fingerprint"));
  EXPECT_THAT(message("definite 00000000000000aa bytes=1 bytes=2 blocks=1 program=p"), HasSubstr("bytes= was there before"));
  EXPECT_THAT(message("definite 00000000000000aa bytes=1 blocks=1 size=3 program=p"), HasSubstr("\"size=3\""));
  EXPECT_THAT(message("definite 00000000000000aa bytes=1 blocks=1 program=p\n\n"
                      "definite 00000000000000aa bytes=2 blocks=1 program=p"),
              HasSubstr("known:3: the same leak as in line 1"));
}

TEST(BaselineTest, AnUpdateWithoutAChangeChangesNoByte) {
  const Baseline baseline = Parsed(kText);
  EXPECT_EQ(baseline.Update(baseline.entries(), {"app", "other one"},
                            kDefinite.With(LeakKind::kPossible)),
            kText);
}

TEST(BaselineTest, LinesKeepTheirEnds) {
  const Baseline baseline = Parsed("# one\r\ndefinite 00000000000000aa bytes=1 blocks=1 program=app\r\n"
                                   "definite 00000000000000bb bytes=1 blocks=1 program=app\r\n");
  ASSERT_EQ(baseline.entries().size(), 2u);
  EXPECT_EQ(baseline.Update({Leak(LeakKind::kDefinite, "00000000000000aa", 1, 1, "app", ""),
                             Leak(LeakKind::kDefinite, "00000000000000bb", 2, 1, "app", ""),
                             Leak(LeakKind::kDefinite, "00000000000000cc", 3, 1, "app", "")},
                            {"app"}, kDefinite),
            "# one\r\ndefinite 00000000000000aa bytes=1 blocks=1 program=app\r\n"
            "definite 00000000000000bb bytes=2 blocks=1 program=app\r\n"
            "definite 00000000000000cc bytes=3 blocks=1 program=app\r\n");
}

TEST(BaselineTest, AnEntryOfAnyProgramAllowsTheMostOfEach) {
  const Baseline baseline = Parsed("definite 00000000000000aa bytes=1 blocks=1 program=*\n");
  EXPECT_EQ(baseline.Update({Leak(LeakKind::kDefinite, "00000000000000aa", 100, 1, "app", "One"),
                             Leak(LeakKind::kDefinite, "00000000000000aa", 50, 10, "else", "One")},
                            {"app", "else"}, kDefinite),
            "definite 00000000000000aa bytes=100 blocks=10 program=*\n");
  const std::string large = "definite 00000000000000aa bytes=480 blocks=10 program=* caller=mk\n";
  EXPECT_EQ(Parsed(large).Update({}, {"app"}, kDefinite), large) << "another program may still have it";
  EXPECT_EQ(Parsed(large).Update({Leak(LeakKind::kDefinite, "00000000000000aa", 100, 1, "app", "One")}, {"app"}, kDefinite), large);
}

TEST(BaselineTest, AnUpdateTouchesTheLinesThatChanged) {
  const std::string updated = Parsed(kText).Update(
      {Leak(LeakKind::kDefinite, "000000000000aaaa", 96, 6, "app", "Renamed  a.cc"),
       Leak(LeakKind::kDefinite, "000000000000dddd", 5, 1, "app", "Four  d.c")},
      {"app"}, kDefinite);
  EXPECT_EQ(updated,
            "# a project's leaks\n"
            "\n"
            "# BUG-1: the cache\n"
            "definite 000000000000aaaa bytes=96 blocks=6 until=2027-01-31 program=app "
            "caller=Load(char const*)  a.cc\n"
            "possible 000000000000bbbb bytes=10 blocks=1 program=app caller=Two\n"  // that kind was not asked for
            "\n"
            "# of another test\n"
            "definite 000000000000cccc bytes=7 blocks=1 program=other%20one caller=Three\n"  // did not run
            "definite 000000000000dddd bytes=5 blocks=1 program=app caller=Four  d.c\n");
}

TEST(BaselineTest, AFixedLeakGoesWithItsComment) {
  EXPECT_EQ(Parsed(kText).Update({}, {"app"}, kDefinite),
            "# a project's leaks\n"
            "\n"
            "possible 000000000000bbbb bytes=10 blocks=1 program=app caller=Two\n"
            "\n"
            "# of another test\n"
            "definite 000000000000cccc bytes=7 blocks=1 program=other%20one caller=Three\n");
}

TEST(BaselineTest, AnUpdateTellsWhatItDid) {
  const Baseline baseline = Parsed("definite 00000000000000aa bytes=10 blocks=1 program=app\n"
                                   "definite 00000000000000bb bytes=10 blocks=1 program=app\n"
                                   "definite 00000000000000cc bytes=10 blocks=9 program=app\n"
                                   "definite 00000000000000dd bytes=10 blocks=1 program=app\n"
                                   "definite 00000000000000ee bytes=10 blocks=1 program=other\n"
                                   "definite 00000000000000ff bytes=10 blocks=5 program=*\n");
  const auto told = [&](const std::vector<BaselineEntry>& leaks,
                        const std::set<std::string>& unfinished = {}) {
    BaselineChanges changes;
    baseline.Update(leaks, {"app"}, kDefinite, unfinished, &changes);
    return ChangesText(changes);
  };
  EXPECT_EQ(told(baseline.entries()), "unchanged");
  EXPECT_EQ(told({Leak(LeakKind::kDefinite, "00000000000000aa", 10, 1, "app", ""),
                  Leak(LeakKind::kDefinite, "00000000000000bb", 20, 1, "app", ""),
                  Leak(LeakKind::kDefinite, "00000000000000cc", 10, 8, "app", ""),
                  Leak(LeakKind::kDefinite, "00000000000000ff", 9, 1, "app", ""),
                  Leak(LeakKind::kDefinite, "gg", 1, 1, "app", ""),
                  Leak(LeakKind::kDefinite, "hh", 1, 1, "app", "")}),
            "2 added, 1 raised, 1 lowered, 1 removed");
  EXPECT_EQ(told({}, {"other"}), "4 removed");
  EXPECT_EQ(told({}, {"app"}), "unchanged, 4 kept, for not all was seen");
  BaselineChanges changes;
  Baseline().Update({}, {"app"}, kDefinite, {}, &changes);
  EXPECT_EQ(ChangesText(changes), "written, without a leak");
}

// It may have ended before it came to what it leaks on its usual way.
TEST(BaselineTest, OfAProgramThatFailedNothingIsFixed) {
  BaselineChanges changes;
  EXPECT_EQ(Parsed(kText).Update({Leak(LeakKind::kDefinite, "000000000000aaaa", 16, 1, "app", "")}, {"app"},
                                 kDefinite.With(LeakKind::kPossible), {"app"}, &changes),
            kText);
  EXPECT_EQ(changes.kept, 2u);
  const std::string raised =
      Parsed(kText).Update({Leak(LeakKind::kDefinite, "000000000000aaaa", 16, 6, "app", ""),
                            Leak(LeakKind::kDefinite, "000000000000dddd", 5, 1, "app", "Four")},
                           {"app"}, kDefinite, {"app"}, &changes);
  EXPECT_THAT(raised, HasSubstr("# BUG-1: the cache\ndefinite 000000000000aaaa bytes=48 blocks=6 until="));
  EXPECT_THAT(raised, HasSubstr("definite 000000000000dddd bytes=5 blocks=1 program=app caller=Four\n"));
  EXPECT_EQ(ChangesText(changes), "1 added, 1 raised");
}

TEST(BaselineTest, ANewFileHasAHeaderAndAnOrder) {
  const std::string text = Baseline().Update(
      {Leak(LeakKind::kDefinite, "0000000000000002", 1, 1, "b", "x"), Leak(LeakKind::kDefinite, "0000000000000001", 1, 1, "a b", "y"),
       Leak(LeakKind::kDefinite, "0000000000000000", 1, 1, "b", "a\n\x1b[31m")},
      {"b"}, kDefinite);
  EXPECT_THAT(text, HasSubstr("# memtrace baseline 1"));
  EXPECT_THAT(text, HasSubstr("definite 0000000000000001 bytes=1 blocks=1 program=a%20b caller=y\n"
                              "definite 0000000000000000 bytes=1 blocks=1 program=b caller=a\\x0a\\x1b[31m\n"
                              "definite 0000000000000002 bytes=1 blocks=1 program=b caller=x\n"));
  EXPECT_EQ(Parsed(text).entries().size(), 3u);
  EXPECT_NE(Parsed(text).Find(LeakKind::kDefinite, "0000000000000001", "a b"), nullptr);
}

// As tests under `ctest -j` do it, each with a gate of its own.
TEST(BaselineFileTest, UpdatesAtOnceLoseNothing) {
  constexpr int kProcesses = 8, kUpdates = 25;
  TempDir directory;
  const std::string path = directory / "leaks.baseline", link = directory / "link";
  ASSERT_EQ(symlink("leaks.baseline", link.c_str()), 0);
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_NE(child, -1);
    if (child != 0) continue;
    bool good = freopen("/dev/null", "w", stderr) != nullptr;  // who waits for whom is no matter
    for (int n = 0; n < kUpdates; ++n) {
      const std::string program = absl::StrCat("app", i, "-", n);
      const auto updated =
          UpdateBaselineFile(n % 2 == 0 ? path : link, [&](const Baseline& now) {
            return now.Update({Leak(LeakKind::kDefinite, "00000000000000aa", 1, 1, program, "F")},
                              {program}, kDefinite);
          });
      good &= updated.ok() &&
              updated->Find(LeakKind::kDefinite, "00000000000000aa", program) != nullptr;
    }
    _exit(good ? 0 : 1);
  }
  for (int i = 0; i < kProcesses; ++i) {
    int status = -1;
    ASSERT_GT(wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(Parsed(ReadFile(path)).entries().size(), size_t{kProcesses} * kUpdates);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_FALSE(std::filesystem::exists(directory / ".leaks.baseline.memtrace-lock"));
}

TEST(BaselineFileTest, ALockThatIsLeftOrIsOfOthersHoldsNobodyUp) {
  TempDir directory;
  const std::string path = directory / "leaks.baseline", lock = directory / ".leaks.baseline.memtrace-lock";
  const std::string others = path + ".lock";  // as of `flock b.lock memtrace check ...`
  const std::string line = "definite 00000000000000aa bytes=1 blocks=1 program=app caller=F\n";
  WriteFile(path, line);
  WriteFile(lock, "");  // of a process that was killed
  const int of_file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int of_directory = open(directory.path().c_str(), O_RDONLY | O_CLOEXEC);
  const int of_others = open(others.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(of_others, LOCK_EX), 0);
  ASSERT_EQ(flock(of_file, LOCK_EX), 0);
  ASSERT_EQ(flock(of_directory, LOCK_EX), 0);
  const auto same = [&](const Baseline& now) {
    return now.Update(now.entries(), {"app"}, kDefinite);
  };
  EXPECT_TRUE(UpdateBaselineFile(path, same).ok());
  EXPECT_EQ(ReadFile(path), line);
  EXPECT_FALSE(std::filesystem::exists(lock));
  EXPECT_TRUE(std::filesystem::exists(others));
  WriteFile(lock, "mine");
  EXPECT_TRUE(UpdateBaselineFile(path, same).ok());
  EXPECT_EQ(ReadFile(lock), "mine");
  close(of_file);
  close(of_directory);
  close(of_others);
}

// Adds the leak of `program` to the baseline in a process of its own, after `prepare`. Exit status
// 0: it did; 77: it could not be prepared. What it says comes out of `said`.
template <typename Prepare>
pid_t UpdateInChild(const std::string& path, const std::string& program, const int (&said)[2],
                    Prepare prepare) {
  const pid_t child = fork();
  if (child != 0) return child;
  dup2(said[1], STDERR_FILENO);
  close(said[0]);
  close(said[1]);
  if (!prepare()) _exit(77);
  const auto updated = UpdateBaselineFile(path, [&](const Baseline& now) {
    return now.Update({Leak(LeakKind::kDefinite, "00000000000000aa", 1, 1, program, "F")},
                      {program}, kDefinite);
  });
  const bool good =
      updated.ok() && updated->Find(LeakKind::kDefinite, "00000000000000aa", program) != nullptr;
  if (!updated.ok()) fprintf(stderr, "%s\n", updated.status().ToString().c_str());
  _exit(good ? 0 : 1);
}

std::string ReadUntil(int fd, char end) {
  std::string text;
  for (char c; read(fd, &c, 1) == 1;) {
    text += c;
    if (c == end) break;
  }
  return text;
}

TEST(BaselineFileTest, WhoHasToWaitSaysSoAndLocksWhatIsThereThen) {
  TempDir directory;
  const std::string path = directory / "leaks.baseline";
  const std::string lock = directory / ".leaks.baseline.memtrace-lock";
  const int held = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(held, LOCK_EX), 0);
  int said[2];
  ASSERT_EQ(pipe(said), 0);
  const pid_t child = UpdateInChild(path, "app", said, [held] { return close(held) == 0; });
  ASSERT_NE(child, -1);
  close(said[1]);
  EXPECT_EQ(ReadUntil(said[0], '\n'), absl::StrCat("memtrace: waiting for another update of ", path,
                                                   " to let go of ", lock, "\n"));
  EXPECT_FALSE(std::filesystem::exists(path));
  // As the holder does it: what the child waits for is no longer the lock.
  unlink(lock.c_str());
  close(held);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ReadUntil(said[0], '\0'), "") << "it is told once";
  close(said[0]);
  EXPECT_EQ(Parsed(ReadFile(path)).entries().size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(lock));
}

// As of some network file systems.
bool RefuseLocks() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_flock, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(BaselineFileTest, GoesOnWithoutALockWhereThereAreNone) {
  TempDir directory;
  const std::string path = directory / "leaks.baseline";
  int said[2];
  ASSERT_EQ(pipe(said), 0);
  const pid_t child = UpdateInChild(path, "app", said, RefuseLocks);
  ASSERT_NE(child, -1);
  close(said[1]);
  EXPECT_EQ(ReadUntil(said[0], '\0'), "");
  close(said[0]);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Parsed(ReadFile(path)).entries().size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(directory / ".leaks.baseline.memtrace-lock"));
}

TEST(BaselineFileTest, ALockThatCannotBeMadeIsExplained) {
  TempDir directory;
  const auto none = [](const Baseline&) { return std::string(); };
  std::filesystem::create_directory(directory / ".b.memtrace-lock");
  EXPECT_THAT(std::string(UpdateBaselineFile(directory / "b", none).status().message()),
              HasSubstr("/.b.memtrace-lock: Is a directory; nothing else may have this name"));
  EXPECT_TRUE(std::filesystem::exists(directory / ".b.memtrace-lock"));
  EXPECT_THAT(std::string(UpdateBaselineFile(directory / "gone/b", none).status().message()),
              HasSubstr("write permission for its directory"));
  EXPECT_THAT(std::string(UpdateBaselineFile(directory / std::string(245, 'b'), none).status().message()),
              HasSubstr("give the baseline a shorter name"));
  const std::string in_proc(UpdateBaselineFile("/proc/b", none).status().message());
  EXPECT_THAT(in_proc, HasSubstr(geteuid() == 0 ? "its directory takes no new file" : "its directory"));
  EXPECT_THAT(in_proc, Not(HasSubstr("remove it"))) << "nothing is there";
}

TEST(BaselineFileTest, MayBeAbsent) {
  TempDir directory;
  const std::string path = directory / "leaks.baseline";
  EXPECT_TRUE(absl::IsNotFound(ReadBaseline(path, /*may_be_absent=*/false).status()));
  EXPECT_TRUE(ReadBaseline(path, /*may_be_absent=*/true).ok());
  // What is no baseline is not written over.
  WriteFile(path, "lost\n");
  EXPECT_FALSE(UpdateBaselineFile(path, [](const Baseline&) { return std::string(); }).ok());
  EXPECT_EQ(ReadFile(path), "lost\n");
}

}  // namespace
}  // namespace memtrace::report::gate
