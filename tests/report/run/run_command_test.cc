// `memtrace run` end to end: what the program sees and says, what is refused, and
// what is left behind.

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "format/trace_format.h"
#include "tests/files.h"
#include "tests/report/run/run_e2e.h"

namespace memtrace::report {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_F(RunTest, EndsAsTheProgramEnds) {
  for (int status : {0, 1, 3, 126, 255}) {
    const Outcome outcome = Run({tracee_, "exit", std::to_string(status)});
    EXPECT_EQ(outcome.status, status);
    EXPECT_THAT(Lines(outcome.err), ElementsAre(MatchesRegex(
        "memtrace: wrote .*/out\\.mtr \\([0-9.]+ [KM]?i?B, [0-9,]+ allocations?\\); "
        "next: memtrace report .*/out\\.mtr")));
    const PackedTrace trace = PackedTrace::Read(directory_ / "out.mtr");
    EXPECT_THAT(trace.observed_end, ElementsAre(1, status, ::testing::_, ::testing::_,
                                                ::testing::Gt(100'000u), 0));
    ExpectNothingLeft({"out.mtr"});
  }
}

TEST_F(RunTest, ReportsASignalLikeAShell) {
  for (int signal : {SIGTERM, SIGKILL, SIGSEGV, SIGUSR1}) {
    const Outcome outcome = Run({tracee_, "kill", std::to_string(signal)});
    EXPECT_EQ(outcome.status, 128 + signal);
    EXPECT_THAT(outcome.err,
                StartsWith(std::string("memtrace: ended by SIG") + sigabbrev_np(signal)));
    const PackedTrace trace = PackedTrace::Read(directory_ / "out.mtr");
    ASSERT_FALSE(trace.observed_end.empty());
    EXPECT_EQ(trace.observed_end[0], 2u);
    EXPECT_EQ(trace.observed_end[1], static_cast<uint64_t>(signal));
    EXPECT_GE(Allocations(trace), 1u) << "what was recorded survives";
  }
}

TEST_F(RunTest, CountsWhatIsInTheTrace) {
  const Outcome outcome = Run({tracee_, "allocate", "1000000"});
  EXPECT_EQ(outcome.status, 0);
  const PackedTrace trace = PackedTrace::Read(directory_ / "out.mtr");
  EXPECT_EQ(trace.gaps, 0u);
  EXPECT_EQ(trace.dropped, 0u);
  const uint64_t allocations = Allocations(trace);
  EXPECT_GE(allocations, 1'000'001u);
  EXPECT_LE(allocations, 1'000'100u);
  EXPECT_THAT(outcome.err, HasSubstr(", 1,000,0"));
}

TEST_F(RunTest, PassesBytesThroughUnchanged) {
  std::mt19937 random(1);
  std::string input(3'000'000, '\0');
  std::generate(input.begin(), input.end(), [&] { return static_cast<char>(random()); });
  const Outcome outcome = Run({tracee_, "echo"}, {}, input);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.out == input);
}

TEST_F(RunTest, ChangesNothingButItsOwnVariables) {
  const auto with_variables = [] {
    setenv("EMPTY", "", 1);
    setenv("LD_PRELOAD", RUN_SHARED_LIBRARY, 1);
    setenv("MEMTRACE_OUT", "/elsewhere", 1);
    setenv("MEMTRACE_STACKS", "off", 1);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);  // where memtrace itself is built so
  };
  const Outcome plain = Plain({"/usr/bin/env"}, "", with_variables);
  const Outcome traced = Run({"/usr/bin/env"}, {"--max-bytes", "1.5 GiB", "--free-stacks"}, "",
                             with_variables);
  EXPECT_EQ(traced.status, 0);
  std::vector<std::string> expected = Lines(plain.out), seen = Lines(traced.out);
  const auto take = [](std::vector<std::string>* lines, const std::string& name) {
    std::string value;
    std::erase_if(*lines, [&](const std::string& line) {
      if (line.rfind(name + "=", 0) != 0) return false;
      value += line.substr(name.size() + 1);
      return true;
    });
    return value;
  };
  take(&expected, "LD_PRELOAD");
  take(&expected, "MEMTRACE_OUT");
  EXPECT_THAT(take(&seen, "LD_PRELOAD"),
              MatchesRegex("/.*/libmemtrace\\.so:" + std::string(RUN_SHARED_LIBRARY)));
  EXPECT_THAT(take(&seen, "MEMTRACE_OUT"),
              MatchesRegex(".*/\\.out\\.mtr\\.spool\\.......%?/%e\\.%p\\.%t\\.mtr"));
  EXPECT_EQ(take(&seen, "MEMTRACE_MAX_BYTES"), "1610612736") << "as the library takes it";
  EXPECT_EQ(take(&seen, "MEMTRACE_FAULTS"), "auto");
  EXPECT_EQ(take(&seen, "MEMTRACE_FREE_STACKS"), "on");
  EXPECT_EQ(seen, expected) << "order included";
}

TEST_F(RunTest, LooksForPageFaultsUnlessTheProgramIsSampledOrSomebodySaysOtherwise) {
  const auto faults = [&](const std::vector<std::string>& options, const char* variable = nullptr,
                          const char* value = "") {
    const Outcome outcome = Run({"/bin/sh", "-c", "echo \"${MEMTRACE_FAULTS-unset}\""}, options, "",
                                [=] { if (variable != nullptr) setenv(variable, value, 1); });
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_EQ(faults({}), "auto\n");
  EXPECT_EQ(faults({"--faults", "snapshots"}), "snapshots\n");
  EXPECT_EQ(faults({}, "MEMTRACE_FAULTS", "off"), "off\n");
  EXPECT_EQ(faults({"--faults", "user"}, "MEMTRACE_FAULTS", "off"), "user\n");
  EXPECT_EQ(faults({"--sample-bytes", "512K"}), "unset\n");
  EXPECT_EQ(faults({"--sample-bytes", "512kib"}), "unset\n");
  EXPECT_EQ(faults({}, "MEMTRACE_SAMPLE_BYTES", "524288"), "unset\n");
  EXPECT_EQ(faults({"--sample-bytes", "0"}, "MEMTRACE_SAMPLE_BYTES", "524288"), "auto\n");
  EXPECT_EQ(faults({"--sample-bytes", "512K", "--faults", "auto"}), "auto\n");
}

TEST_F(RunTest, GivesTheProgramNoDescriptorOfOurs) {
  const Outcome plain = Plain({tracee_, "fds"});
  const Outcome traced = Run({tracee_, "fds"});
  EXPECT_EQ(traced.out, plain.out);
  EXPECT_THAT(Lines(traced.out), ElementsAre("0", "1", "2"));
}

TEST_F(RunTest, WorksWithItsStandardStreamsClosed) {
  const auto close_streams = [] {
    close(0);
    close(2);
  };
  const Outcome plain = Plain({tracee_, "fds"}, "", close_streams);
  const Outcome traced = Run({tracee_, "fds"}, {}, "", close_streams);
  EXPECT_EQ(traced.status, 0);
  EXPECT_EQ(traced.out, plain.out);
  const PackedTrace trace = PackedTrace::Read(directory_ / "out.mtr");
  EXPECT_EQ(trace.gaps, 0u) << "our messages must not end up in a file";
}

TEST_F(RunTest, LeavesSignalsAsTheyWere) {
  const auto odd_signals = [] {
    signal(SIGHUP, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, nullptr);
  };
  const Outcome plain = Plain({tracee_, "signals"}, "", odd_signals);
  const Outcome traced = Run({tracee_, "signals"}, {}, "", odd_signals);
  EXPECT_EQ(traced.status, 0) << "an ignored SIGCHLD must not hide the end";
  EXPECT_EQ(traced.out, plain.out);
  EXPECT_THAT(traced.out, HasSubstr("ignored 1\n"));
}

TEST_F(RunTest, GivesTheProgramItsArgumentsAsTheyAre) {
  const std::vector<std::string> odd = {"--", "-x", "", "[a,b]", "{}", "--help", "%%", "-o", "run",
                                        "--quiet", "a b", "--x=1", "++"};
  std::vector<std::string> command = {"/usr/bin/printf", "%s|"};
  command.insert(command.end(), odd.begin(), odd.end());
  std::string expected;
  for (const std::string& word : odd) expected += word + "|";
  EXPECT_EQ(Run(command).out, expected);
  // The -- may be left out.
  std::vector<std::string> without = {RUN_MEMTRACE, "run", "-q"};
  without.insert(without.end(), command.begin(), command.end());
  EXPECT_EQ(Running(without, directory_.path()).Wait().out, expected);
}

TEST_F(RunTest, IsQuietWhenAsked) {
  EXPECT_THAT(Run({tracee_}, {"-q"}).err, IsEmpty());
  EXPECT_EQ(PackedTrace::Read(directory_ / "out.mtr").gaps, 0u);
}

TEST_F(RunTest, ExpandsTheNameOfTheOutput) {
  Running run({RUN_MEMTRACE, "run", "--", tracee_, "exit", "0"}, directory_.path());
  const Outcome outcome = run.Wait();
  ASSERT_THAT(FilesIn(directory_),
              ElementsAre(MatchesRegex("memtrace\\.run_dynamic\\.[0-9]+\\.mtr")));
  EXPECT_THAT(outcome.err, HasSubstr("wrote " + FilesIn(directory_)[0] + " ("));
  const PackedTrace trace = PackedTrace::Read(directory_ / FilesIn(directory_)[0]);
  EXPECT_EQ(FilesIn(directory_)[0], "memtrace.run_dynamic." + std::to_string(trace.pid) + ".mtr");
}

// The pid is not known before the program runs, but where the file will be is.
TEST_F(RunTest, ANameMayBeThePidAlone) {
  Running run({RUN_MEMTRACE, "run", "-o", "%p", "--", tracee_, "exit", "3"}, directory_.path());
  EXPECT_EQ(run.Wait().status, 3);
  EXPECT_THAT(FilesIn(directory_), ElementsAre(MatchesRegex("[0-9]+")));
  Running refused({RUN_MEMTRACE, "run", "-o", "%p/x.mtr", "--", tracee_, "exit", "3"}, directory_.path());
  const Outcome outcome = refused.Wait();
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("%p can be in the name of the file, not of its directory"));
  EXPECT_EQ(FilesIn(directory_).size(), 1u);
}

// Of the same number in a sandbox's pid namespace.
TEST_F(RunTest, AnotherProcessOfThePidIsNotTheProgram) {
  if (geteuid() != 0) GTEST_SKIP() << "for root";
  const std::string inner = "for i in 1 2 3 4 5 6 7 8 9; do /bin/ls / > /dev/null; done";
  Running run({"/usr/bin/unshare", "-p", "-f", "--mount-proc", RUN_MEMTRACE, "run", "-o", directory_ / "out.mtr", "--",
               "/bin/sh", "-c", "unshare -p -f sh -c '" + inner + "'; exit 6"}, directory_.path());
  const Outcome outcome = run.Wait();
  // In a container, or where the root is no mount point.
  for (const char* refused : {"unshare failed", "unshare: cannot"}) {
    if (outcome.err.find(refused) != std::string::npos) GTEST_SKIP() << outcome.err;
  }
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_THAT(Plain({RUN_MEMTRACE, "info", directory_ / "out.mtr"}).out, HasSubstr("/bin/sh -c"));
}

TEST_F(RunTest, ReplacesAnOlderTraceOnlyAtTheEnd) {
  const std::string old = std::string(std::begin(format::kFileMagic), std::end(format::kFileMagic)) + "old";
  WriteFile(directory_ / "out.mtr", old);
  const Outcome outcome = Run({"/bin/cat", "out.mtr"});
  EXPECT_EQ(outcome.out, old);
  EXPECT_TRUE(PackedTrace::Read(directory_ / "out.mtr").packed);
  ExpectNothingLeft({"out.mtr"});
}

TEST_F(RunTest, RunsScriptsWithAndWithoutAFirstLine) {
  WriteProgram(directory_ / "with", "#!/bin/sh\necho with $1\nexit 4\n");
  WriteProgram(directory_ / "without", "echo without $1\nexit 5\n");
  Outcome outcome = Run({"./with", "x"});
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  EXPECT_EQ(outcome.out, "with x\n");
  outcome = Run({"./without", "x"});
  EXPECT_EQ(outcome.status, 5) << outcome.err;
  EXPECT_EQ(outcome.out, "without x\n");
}

class RunRefusalTest : public RunTest {
 protected:
  // One line, the status, nothing run and nothing left but what was there.
  void ExpectRefused(const std::vector<std::string>& command, int status,
                     const ::testing::Matcher<std::string>& message,
                     const std::vector<std::string>& options = {},
                     const std::function<void()>& prepare = nullptr) {
    const std::vector<std::string> before = FilesIn(directory_);
    const Outcome outcome = Run(command, options, "", prepare);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.out, IsEmpty()) << "it must not run";
    EXPECT_THAT(Lines(outcome.err), ElementsAre(AllOf(StartsWith("memtrace: "), message)));
    ExpectNothingLeft(before);
  }
};

TEST_F(RunRefusalTest, WhatIsNotThereOrCannotRun) {
  ExpectRefused({"no-such-program"}, 127, HasSubstr("not found in PATH"));
  ExpectRefused({"./no-such-program"}, 127, HasSubstr("No such file or directory"));
  WriteFile(directory_ / "plain", "x");
  ExpectRefused({"./plain"}, 126, HasSubstr("chmod +x"));
  ExpectRefused({directory_.path()}, 126, HasSubstr("is a directory"));
}

TEST_F(RunRefusalTest, WhatALibraryCannotBePreloadedInto) {
  ExpectRefused({RUN_STATIC_PROGRAM, "env"}, 2, HasSubstr("statically linked"));
  ExpectRefused({RUN_ASAN_PROGRAM, "env"}, 2, HasSubstr("AddressSanitizer"));
  ExpectRefused({RUN_TSAN_PROGRAM, "env"}, 2, HasSubstr("ThreadSanitizer"));
  WriteProgram(directory_ / "script", "#!/no/such/python3\nprint()\n");
  ExpectRefused({"./script"}, 2, HasSubstr("its interpreter /no/such/python3 is missing"));
  Elf32_Ehdr header = {};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS32;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = EM_386;
  WriteProgram(directory_ / "elf32", std::string(reinterpret_cast<char*>(&header), sizeof(header)));
  ExpectRefused({"./elf32"}, 2, HasSubstr("32-bit"));
}

TEST_F(RunRefusalTest, PrivilegesThatTheProgramWouldGain) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make files of two users";
  ASSERT_EQ(chmod(directory_.path().c_str(), 0777), 0);
  const auto be_nobody = [] {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(96);
  };
  if (Plain({tracee_, "exit", "0"}, "", be_nobody).status != 0) {
    GTEST_SKIP() << "the build directory is not readable for others";
  }
  std::filesystem::copy_file(tracee_, directory_ / "program");
  ASSERT_EQ(chmod((directory_ / "program").c_str(), 04755), 0);
  ExpectRefused({"./program", "env"}, 2, HasSubstr("it is setuid"), {}, be_nobody);
  EXPECT_EQ(Run({"./program", "exit", "6"}).status, 6) << "root gains nothing by it";
  std::filesystem::remove(directory_ / "out.mtr");
  ASSERT_EQ(chmod((directory_ / "program").c_str(), 0755), 0);
  const uint32_t capability[5] = {0x02000001, 1u << 13, 0, 0, 0};  // cap_net_raw+ep
  if (setxattr((directory_ / "program").c_str(), "security.capability", capability,
               sizeof(capability), 0) == 0) {
    ExpectRefused({"./program", "env"}, 2, HasSubstr("file capabilities"), {}, be_nobody);
  }
}

TEST_F(RunRefusalTest, AnOutputThatCannotBeWritten) {
  WriteFile(directory_ / "file", "");
  ExpectRefused({tracee_, "env"}, 2, HasSubstr("Not a directory"), {"-o", "file/out.mtr"});
  ExpectRefused({tracee_, "env"}, 2, HasSubstr("No such file or directory"), {"-o", "no/out.mtr"});
  ExpectRefused({tracee_, "env"}, 2, HasSubstr("cannot write in /proc"), {"-o", "/proc/out.mtr"});
  ExpectRefused({tracee_, "env"}, 2, HasSubstr("it is a directory"), {"-o", directory_.path()});
  ExpectRefused({tracee_, "env"}, 2, HasSubstr("no regular file"), {"-o", "/dev/null"});
}

// The name of the program or of its source, where that of a trace was meant.
TEST_F(RunRefusalTest, AnOutputThatWouldReplaceWhatIsNoTrace) {
  WriteFile(directory_ / "leak.c", "int main() {}\n");
  ExpectRefused({tracee_, "env"}, 2, HasSubstr("leak.c: it is no trace; give another name"), {"-o", "leak.c"});
  const std::string program(tracee_.substr(tracee_.rfind('/') + 1));
  WriteProgram(directory_ / program, "mine");
  ExpectRefused({tracee_, "env"}, 2, HasSubstr("it is no trace"), {"-o", "%e"});
}

TEST_F(RunRefusalTest, ALibraryThatIsNotThere) {
  ExpectRefused({tracee_, "env"}, 2, HasSubstr("/no/libmemtrace.so: No such file"),
                {"--library", "/no/libmemtrace.so"});
}

TEST_F(RunRefusalTest, WrongOptions) {
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {"--stacks", "some"}, {"--max-bytes", "much"}, {"--max-bytes", "-1"},
           {"--max-bytes", "99999999999999999999"}, {"--max-bytes", "99999999T"},
           {"--max-bytes", "1MK"}, {"--sample-bytes", "2TB"},
           {"--children", "2"}, {"--no-such-option"}}) {
    const Outcome outcome = Run({tracee_, "env"}, options);
    EXPECT_NE(outcome.status, 0) << options[0];
    EXPECT_THAT(outcome.out, Not(HasSubstr("PATH="))) << "it must not run";
    EXPECT_THAT(outcome.err + outcome.out, HasSubstr(options[0]));
  }
}

TEST_F(RunTest, SaysThatTheLibraryWasNotLoaded) {
  const Outcome outcome = Run({tracee_, "exit", "0"}, {"--library", RUN_SHARED_LIBRARY});
  EXPECT_EQ(outcome.status, 2) << "never a clean run";
  EXPECT_THAT(Lines(outcome.err), ElementsAre(HasSubstr("was not traced")));
  ExpectNothingLeft();
}

}  // namespace
}  // namespace memtrace::report
