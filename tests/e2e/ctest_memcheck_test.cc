// memtrace-valgrind where Valgrind is called today: by hand and by CTest's memcheck step.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Driver() {
  const std::string tool = ToolPath();
  return tool.substr(0, tool.rfind('/')) + "/memtrace-valgrind";
}

Result Drive(Words options, const Words& program) {
  options.insert(options.begin(), Driver());
  options.push_back(TraceePath("leaks_of_each_kind"));
  options.insert(options.end(), program.begin(), program.end());
  return RunCommand({.arguments = options});
}

TEST(ValgrindDriverTest, WritesMemchecksReportAndThenItsExitStatus) {
  const Result leaks = Drive({"--leak-check=full", "--error-exitcode=9"}, {});
  EXPECT_EQ(leaks.exit_status, 9) << leaks.err;
  EXPECT_THAT(leaks.err, HasSubstr(" 300 bytes in 3 blocks are definitely lost in loss record "));
  EXPECT_THAT(leaks.err, HasSubstr(" 64 (32 direct, 32 indirect) bytes in 1 blocks are definitely lost"));
  EXPECT_THAT(leaks.err, HasSubstr(" 200 bytes in 1 blocks are possibly lost in loss record "));
  EXPECT_THAT(leaks.err, HasSubstr("==    by 0x"));
  EXPECT_THAT(leaks.err, HasSubstr(": lose_definitely (leaks_of_each_kind.c:"));
  EXPECT_THAT(leaks.err, HasSubstr("==    definitely lost: 332 bytes in 4 blocks\n"));
  EXPECT_THAT(leaks.err, HasSubstr("==    still reachable: 32 bytes in 1 blocks\n"));
  EXPECT_THAT(leaks.err, HasSubstr("== ERROR SUMMARY: 3 errors from 3 contexts"));
  const Result none = Drive({"--leak-check=full", "--error-exitcode=9"}, {"none"});
  EXPECT_EQ(none.exit_status, 0) << none.err;
  EXPECT_THAT(none.err, HasSubstr("All heap blocks were freed -- no leaks are possible"));
}

TEST(ValgrindDriverTest, NeverMasksTheProgramsOwnFailure) {
  EXPECT_EQ(Drive({"-q", "--leak-check=full", "--error-exitcode=9"}, {"3"}).exit_status, 3);
  const Result aborted = Drive({"-q", "--leak-check=full", "--error-exitcode=9"}, {"abort"});
  EXPECT_EQ(aborted.signal, SIGABRT) << aborted.Outcome() << aborted.err;
}

Result DriveOther(Words options, const std::string& tracee, const Words& arguments = {}) {
  options.insert(options.begin(), Driver());
  options.push_back(TraceePath(tracee));
  options.insert(options.end(), arguments.begin(), arguments.end());
  return RunCommand({.arguments = options});
}

// Of each error of frees in an XML of Valgrind's: its kind, and the two innermost functions of each stack.
std::multiset<std::string> FreeErrorsIn(const std::string& file) {
  static const std::regex kKind("<kind>(.*)</kind>"), kFunction("<fn>(.*)</fn>");
  std::multiset<std::string> errors;
  std::istringstream lines(ReadFile(file));
  std::string error;
  int in_stack = 0;
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, match, kKind)) error = match[1];
    if (line.find("<stack>") != std::string::npos) in_stack = 0;
    if (std::regex_search(line, match, kFunction) && ++in_stack <= 2) error += "|" + match[1].str();
    // What realloc is asked for nothing is malloc's, there.
    if (error.ends_with("|malloc") && error.starts_with("MismatchedFree|operator delete(void*)|")) {
      error.replace(error.size() - 6, 6, "realloc");
    }
    if (line == "</error>" && error.find("Free") < error.find('|')) errors.insert(error);
  }
  return errors;
}

TEST(ValgrindDriverTest, TellsTheErrorsOfFreesThatMemcheckTells) {
  const TempDir directory;
  for (const auto& [tracee, arguments] : std::vector<std::pair<std::string, Words>>{
           {"mismatched_pairs", {}}, {"frees_twice_unnoticed", {}}}) {
    const std::string here = directory / "here.xml", there = directory / "there.xml";
    EXPECT_EQ(DriveOther({"--xml=yes", "--xml-file=" + here, "--error-exitcode=7"}, tracee, arguments).Outcome(), "exit 7");
    const Result valgrind = RunCommand({.arguments = {"valgrind", "--xml=yes", "--xml-file=" + there,
                                                      "--error-exitcode=7", TraceePath(tracee)},
                                        .timeout_seconds = 300});
    EXPECT_EQ(valgrind.Outcome(), "exit 7") << valgrind.err;
    EXPECT_FALSE(FreeErrorsIn(here).empty());
    EXPECT_EQ(FreeErrorsIn(here), FreeErrorsIn(there)) << ReadFile(here);
  }
}

TEST(ValgrindDriverTest, CountsAndSuppressesErrorsOfFrees) {
  const TempDir directory;
  const Result found = DriveOther({"--gen-suppressions=all"}, "mismatched_pairs");
  EXPECT_THAT(found.err, HasSubstr("== Mismatched free() / delete / delete []\n"));
  EXPECT_THAT(found.err, HasSubstr("ERROR SUMMARY: 13 errors from "));
  EXPECT_THAT(DriveOther({"-q", "--show-mismatched-frees=no"}, "mismatched_pairs").err, Not(HasSubstr("Mismatched")));
  std::string suppressions;
  for (size_t at = 0; (at = found.err.find("{\n", at)) != std::string::npos;) {
    const size_t end = found.err.find("}\n", at) + 2;
    suppressions += found.err.substr(at, end - at);
    at = end;
  }
  WriteFile(directory / "known.supp", suppressions);
  for (const std::string& tool : {Driver(), std::string("valgrind")}) {
    const Result known = RunCommand({.arguments = {tool, "--suppressions=" + directory / "known.supp",
                                                   "--error-exitcode=7", TraceePath("mismatched_pairs")},
                                     .timeout_seconds = 300});
    EXPECT_EQ(known.Outcome(), "exit 0") << tool << known.err;
    EXPECT_THAT(known.err, HasSubstr("ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 13 from ")) << tool;
  }
}

// glibc ends the program, so that its memory is not scanned.
TEST(ValgrindDriverTest, TellsOfTheFreeThatAProgramDiedOf) {
  const Result died = DriveOther({}, "frees_twice");
  EXPECT_EQ(died.signal, SIGABRT) << died.Outcome();
  EXPECT_THAT(died.err, HasSubstr("== Invalid free() / delete / delete[] / realloc()\n"));
  EXPECT_THAT(died.err, HasSubstr(": give_back_again (frees_twice.c:"));
  EXPECT_THAT(died.err, HasSubstr(" is 0 bytes inside a block of size 100 free'd\n"));
  EXPECT_THAT(died.err, HasSubstr("==  Block was alloc'd at\n"));
}

TEST(ValgrindDriverTest, TellsOfItInXmlAsWell) {
  const TempDir directory;
  const std::string xml = directory / "a.xml";
  WriteFile(xml, "<valgrindoutput>of the night before</valgrindoutput>");
  const Result died = DriveOther({"-q", "--xml=yes", "--xml-file=" + xml}, "frees_twice");
  EXPECT_EQ(died.signal, SIGABRT) << died.Outcome();
  EXPECT_THAT(died.err, HasSubstr("are not known: "));
  EXPECT_THAT(ReadFile(xml), HasSubstr("<fn>give_back_again</fn>"));
  EXPECT_THAT(ReadFile(xml), HasSubstr("<signame>SIGABRT</signame>"));
  EXPECT_EQ(FreeErrorsIn(xml).size(), 1u);
}

// What is there then would be taken for this run's.
TEST(ValgrindDriverTest, LeavesNoFileOfAnEarlierRun) {
  const TempDir directory;
  const std::string xml = directory / "a.xml", log = directory / "a.log",
                    link = directory / "link";
  const auto drive = [&](const Words& program, const std::string& log_file) {
    WriteFile(xml, "<valgrindoutput>of the night before</valgrindoutput>");
    WriteFile(log, "of the night before");
    Words words = {Driver(), "-q", "--xml=yes", "--xml-file=" + xml, "--log-file=" + log_file};
    words.insert(words.end(), program.begin(), program.end());
    return RunCommand({.arguments = words});
  };
  EXPECT_EQ(drive({"/no/such/program"}, log).exit_status, 127);
  EXPECT_FALSE(Exists(xml));
  EXPECT_FALSE(Exists(log));
  // It is gone while the program runs.
  EXPECT_EQ(drive({"test", "!", "-e", xml}, log).Outcome(), "exit 0");
  EXPECT_THAT(ReadFile(xml), HasSubstr("<state>FINISHED</state>"));
  ASSERT_EQ(symlink(log.c_str(), link.c_str()), 0);
  EXPECT_EQ(drive({"/no/such/program"}, link).exit_status, 127);
  EXPECT_EQ(ReadFile(log), "") << "a link stays one";
}

TEST(ValgrindDriverTest, NoScanIsNeverNoLeaks) {
  // What a signal ends is not scanned.
  const Result aborted = Drive({"-q", "--leak-check=full"}, {"abort"});
  EXPECT_THAT(aborted.err, HasSubstr("are not known: "));
}

TEST(ValgrindDriverTest, WritesItsFilesWhereTheyAreAskedFor) {
  const TempDir directory;
  const Result run = Drive({"-q", "--leak-check=full", "--log-file=" + directory / "log.%p"}, {});
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_EQ(run.err, "");
  const std::vector<std::string> logs = FilesIn(directory.path());
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_THAT(ReadFile(directory / logs[0]), HasSubstr("are definitely lost in loss record"));

  const Result xml = Drive({"--xml=yes", "--show-leak-kinds=all", "--xml-file=" + directory / "a.xml"}, {});
  EXPECT_EQ(xml.exit_status, 0) << xml.err;
  EXPECT_THAT(ReadFile(directory / "a.xml"), HasSubstr("<kind>Leak_IndirectlyLost</kind>"));
}

TEST(ValgrindDriverTest, SuppressesWhatValgrindWouldAndPrintsSuppressionsThatDo) {
  const TempDir directory;
  const Result printed = Drive({"-q", "--leak-check=full", "--gen-suppressions=all"}, {});
  std::string text;
  for (size_t at = 0; (at = printed.err.find("{\n", at)) != std::string::npos;) {
    const size_t end = printed.err.find("}\n", at) + 2;
    text += printed.err.substr(at, end - at);
    at = end;
  }
  ASSERT_THAT(text, HasSubstr("fun:lose_definitely"));
  WriteFile(directory / "all.supp", text);
  const Result run = Drive({"--leak-check=full", "--error-exitcode=9",
                            "--suppressions=" + directory / "all.supp"}, {});
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 3 from 3)"));
}

// ~/.valgrindrc, VALGRIND_OPTS, ./.valgrindrc, the command line: the last word counts.
TEST(ValgrindDriverTest, TakesWhatIsSetForAllRuns) {
  const TempDir home, here;
  const auto drive = [&](const std::string& variable, const std::string& option) {
    Command command = {.arguments = {Driver(), option, TraceePath("leaks_of_each_kind")}};
    command.directory = here.path();
    command.environment = {{"HOME", home.path()}, {"VALGRIND_OPTS", variable}};
    return RunCommand(command);
  };
  WriteFile(home / ".valgrindrc", "# of all projects\n--leak-check=full --error-exitcode=3\n");
  EXPECT_EQ(drive("", "-q").exit_status, 3);
  EXPECT_EQ(drive("--memcheck:error-exitcode=4", "-q").exit_status, 4);
  WriteFile(here / ".valgrindrc", "--error-exitcode=5\n");
  EXPECT_EQ(drive("--error-exitcode=4", "-q").exit_status, 5);
  EXPECT_EQ(drive("--error-exitcode=4", "--error-exitcode=6").exit_status, 6);
  // Anybody could have written that.
  ASSERT_EQ(chmod((here / ".valgrindrc").c_str(), 0666), 0);
  EXPECT_EQ(drive("--error-exitcode=4", "-q").exit_status, 4);
  const Result wrong = drive("--leak-chek=full", "-q");
  EXPECT_EQ(wrong.exit_status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("VALGRIND_OPTS: unknown option --leak-chek=full"));
}

// Valgrind goes with a fork in any case, and with an exec when it is told to.
TEST(ValgrindDriverTest, ForkedChildrenAreReportedOn) {
  bool becomes_another = false;
  const auto drive = [&](const Words& options) {
    Words words = {Driver(), "-q", "--leak-check=full", "--error-exitcode=9"};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back(TraceePath("leaks_in_children"));
    return RunCommand({.arguments = words, .environment = {{becomes_another ? "BECOMES_ANOTHER" : "UNUSED", "1"}}});
  };
  const Result run = drive({});
  EXPECT_EQ(run.exit_status, 9) << run.err;
  EXPECT_THAT(run.err, HasSubstr(" 33 bytes in 1 blocks are definitely lost"));
  EXPECT_THAT(run.err, HasSubstr(" 35 bytes in 1 blocks are definitely lost"));
  EXPECT_THAT(run.err, Not(HasSubstr(" 44 bytes in 1 blocks")));
  // Its children are told of, and what it becomes is not.
  becomes_another = true;
  const Result replaced = drive({});
  becomes_another = false;
  EXPECT_EQ(replaced.exit_status, 9) << replaced.err;
  EXPECT_THAT(replaced.err, HasSubstr(" 33 bytes in 1 blocks are definitely lost"));
  EXPECT_THAT(replaced.err, Not(HasSubstr(" 44 bytes in 1 blocks")));
  const Result silent = drive({"--child-silent-after-fork=yes"});
  EXPECT_EQ(silent.exit_status, 0) << silent.err;
  EXPECT_EQ(silent.err, "");
  const Result all = drive({"--trace-children=yes"});
  EXPECT_EQ(all.exit_status, 9);
  EXPECT_THAT(all.err, HasSubstr(" 44 bytes in 1 blocks are definitely lost"));
  const Result skipped = drive({"--trace-children=yes", "--trace-children-skip=/no/such,*leaks_in_ch?ldren"});
  EXPECT_EQ(skipped.exit_status, 9) << skipped.err;
  EXPECT_THAT(skipped.err, HasSubstr(" 33 bytes in 1 blocks are definitely lost"));
  EXPECT_THAT(skipped.err, Not(HasSubstr(" 44 bytes in 1 blocks")));
}

// A wrapper that execs the program, as libtool's do. Valgrind's log of one has its head.
TEST(ValgrindDriverTest, SaysThatAProgramWasReplacedByOneThatIsNotFollowed) {
  const TempDir directory;
  const std::string program = TraceePath("leaks_of_each_kind"), log = directory / "a.log",
                    xml = directory / "a.xml";
  const std::string replaced = "are not known: the program was replaced by an exec of " + program +
                               ", which is not followed without --trace-children=yes";
  const auto drive = [&](Words options, const Words& arguments) {
    options.insert(options.begin(), {Driver(), "--leak-check=full", "--error-exitcode=9"});
    options.insert(options.end(), {"env", program});
    options.insert(options.end(), arguments.begin(), arguments.end());
    return RunCommand({.arguments = options});
  };
  const Result text = drive({}, {});
  EXPECT_EQ(text.Outcome(), "exit 0") << text.err;
  EXPECT_THAT(text.err, HasSubstr("== Command: env " + program + "\n"));
  EXPECT_THAT(text.err, HasSubstr(replaced + "\n"));
  EXPECT_THAT(text.err, Not(HasSubstr("SUMMARY")));
  EXPECT_THAT(drive({"--log-fd=1"}, {}).out, HasSubstr(replaced + "\n"));
  // As CTest calls it.
  EXPECT_EQ(drive({"-q", "--log-file=" + log}, {}).err, "");
  EXPECT_THAT(ReadFile(log), HasSubstr(replaced + "\n"));
  const Result in_xml = drive({"--xml=yes", "--xml-file=" + xml, "--log-file=" + log}, {});
  EXPECT_EQ(in_xml.Outcome(), "exit 0") << in_xml.err;
  EXPECT_THAT(ReadFile(xml), HasSubstr(replaced + "</line>\n"));
  EXPECT_THAT(ReadFile(xml), HasSubstr("</valgrindoutput>"));
  EXPECT_THAT(ReadFile(xml), Not(HasSubstr("FINISHED")));
  EXPECT_THAT(ReadFile(log), HasSubstr(replaced + "\n"));

  EXPECT_EQ(drive({}, {"3"}).Outcome(), "exit 3");
  EXPECT_EQ(drive({}, {"abort"}).signal, SIGABRT);
  const Result followed = drive({"--trace-children=yes"}, {});
  EXPECT_EQ(followed.Outcome(), "exit 9") << followed.err;
  EXPECT_THAT(followed.err, Not(HasSubstr("are not known: ")));
  const Result skipped = drive({"--trace-children=yes", "--trace-children-skip=" + program}, {});
  EXPECT_EQ(skipped.Outcome(), "exit 0") << skipped.err;
  EXPECT_THAT(skipped.err, HasSubstr(program + ", which --trace-children-skip leaves out\n"));
}

// As the child of a death test is.
TEST(ValgrindDriverTest, AForkedChildThatAbortsIsUnknownUnlessChildrenAreLeftOut) {
  const auto drive = [](const std::string& silent) {
    return RunCommand({.arguments = {Driver(), "-q", "--child-silent-after-fork=" + silent, "bash",
                                     "-c", "(kill -ABRT $BASHPID); exit 0"}});
  };
  const Result told = drive("no");
  EXPECT_EQ(told.exit_status, 2) << told.err;
  EXPECT_THAT(told.err, HasSubstr("are not known: "));
  const Result silent = drive("yes");
  EXPECT_EQ(silent.exit_status, 0) << silent.err;
  EXPECT_THAT(silent.err, Not(HasSubstr("are not known: ")));
}

TEST(ValgrindDriverTest, FindsInTheSymbolCacheWhatAnEarlierRunFound) {
  const TempDir directory;
  const std::string cache = directory / "cache";
  const auto drive = [&] {
    return RunCommand({.arguments = {Driver(), "-q", "--leak-check=full",
                                     TraceePath("leaks_of_each_kind")},
                       .environment = {{"MEMTRACE_SYMBOL_CACHE", cache}}});
  };
  // An entry that is written again is another file.
  const auto entries = [&] {
    std::set<uint64_t> inodes;
    struct stat st = {};
    for (const std::string& name : FilesIn(cache)) {
      if (stat((cache + "/" + name).c_str(), &st) == 0) inodes.insert(st.st_ino);
    }
    return inodes;
  };
  const Result first = drive();
  EXPECT_THAT(first.err, HasSubstr(": lose_definitely (leaks_of_each_kind.c:"));
  ASSERT_TRUE(Exists(cache));
  const std::set<uint64_t> found = entries();
  const Result second = drive();
  EXPECT_THAT(second.err, HasSubstr(": lose_definitely (leaks_of_each_kind.c:"));
  // That of the program itself, at least: of libc a run may ask for addresses of its own.
  EXPECT_THAT(entries(), testing::Contains(testing::AnyOfArray(found)));
}

TEST(ValgrindDriverTest, RefusesWhatItDoesNotKnow) {
  const Result run = Drive({"--leak-check=sometimes"}, {});
  EXPECT_EQ(run.exit_status, 2);
  EXPECT_THAT(run.err, HasSubstr("memtrace-valgrind: --leak-check=sometimes: takes no, summary"));
}

// A project of three tests: one leaks, one does not, one fails.
TEST(CTestMemcheckTest, CountsLeaksAsDefectsOfTheirTests) {
  const TempDir directory;
  const std::string program = TraceePath("leaks_of_each_kind");
  WriteFile(directory / "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.25)\nproject(tiny LANGUAGES NONE)\n"
            "include(CTest)\n"
            "add_test(NAME leaks COMMAND " + program + ")\n"
            "add_test(NAME clean COMMAND " + program + " none)\n"
            "add_test(NAME fails COMMAND " + program + " 3)\n");
  WriteFile(directory / "memcheck.cmake",
            "set(CTEST_SOURCE_DIRECTORY " + directory.path() + ")\n"
            "set(CTEST_BINARY_DIRECTORY " + directory / "build" + ")\n"
            "set(CTEST_CMAKE_GENERATOR \"Unix Makefiles\")\n"
            "set(CTEST_MEMORYCHECK_TYPE Valgrind)\n"
            "set(CTEST_MEMORYCHECK_COMMAND " + Driver() + ")\n"
            "ctest_start(Experimental)\nctest_configure()\n"
            "ctest_memcheck(RETURN_VALUE failed DEFECT_COUNT defects)\n"
            "message(STATUS \"failed ${failed} defects ${defects}\")\n");
  const Result run =
      RunCommand({.arguments = {"ctest", "-S", directory / "memcheck.cmake", "-VV"}});
  // CTest counts two records of what is definitely lost, one that is possibly lost and one that is
  // reachable, in each of two tests; it does not know what is indirectly lost.
  EXPECT_THAT(run.out + run.err, HasSubstr("defects 8")) << run.out << run.err;
  const std::string testing = directory / "build/Testing";
  std::string xml;
  for (const std::string& name : FilesIn(testing)) {
    if (Exists(testing + "/" + name + "/DynamicAnalysis.xml")) {
      xml = ReadFile(testing + "/" + name + "/DynamicAnalysis.xml");
    }
  }
  const auto test = [&](const std::string& name) {
    const size_t at = xml.find("<Name>" + name + "</Name>");
    return at == xml.npos ? "" : xml.substr(at, xml.find("</Test>", at) - at);
  };
  EXPECT_THAT(test("leaks"), HasSubstr("<Defect type=\"Memory Leak\">2</Defect>")) << xml;
  EXPECT_THAT(test("leaks"), HasSubstr("<Defect type=\"Potential Memory Leak\">2</Defect>"));
  EXPECT_THAT(test("clean"), Not(HasSubstr("<Defect ")));
  EXPECT_THAT(xml.substr(xml.rfind("<Test ", xml.find("<Name>fails</Name>")), 30),
              HasSubstr("Status=\"failed\""));
}

}  // namespace
}  // namespace memtrace::e2e
