// The words behind memtrace-valgrind.

#include "report/leak/leak_kinds.h"
#include "report/valgrind/driver_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

namespace memtrace::report::valgrind {
namespace {

using testing::HasSubstr;
using LeakCheck = render::ValgrindStyle::LeakCheck;

DriverOptions OptionsOf(std::vector<std::string> words) {
  words.push_back("./app");
  const auto options = ParseDriverOptions(words);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *options : DriverOptions();
}

TEST(DriverOptionsTest, DefaultsAreValgrinds) {
  const DriverOptions options = OptionsOf({});
  EXPECT_EQ(options.leak_check, LeakCheck::kSummary);
  EXPECT_EQ(options.show, LeakKindSet::Default());
  EXPECT_EQ(options.errors, LeakKindSet::Default());
  EXPECT_EQ(options.callers, 12u);
  EXPECT_EQ(options.verbosity, 1);
  EXPECT_EQ(options.error_exitcode, 0);
  EXPECT_FALSE(options.trace_children);
  EXPECT_TRUE(options.default_suppressions);
}

TEST(DriverOptionsTest, TakesWhatCTestGives) {
  const DriverOptions options =
      OptionsOf({"--log-file=/b/MemoryChecker.1.log", "-q", "--tool=memcheck", "--leak-check=yes",
              "--show-reachable=yes", "--num-callers=50", "--suppressions=/s/a.supp"});
  EXPECT_EQ(options.log_file, "/b/MemoryChecker.1.log");
  EXPECT_EQ(options.verbosity, 0);
  EXPECT_EQ(options.leak_check, LeakCheck::kFull);
  EXPECT_EQ(options.show, LeakKindSet::OfScans());
  EXPECT_EQ(options.callers, 50u);
  EXPECT_EQ(options.suppressions, std::vector<std::string>{"/s/a.supp"});
  EXPECT_EQ(options.command, std::vector<std::string>{"./app"});
}

TEST(DriverOptionsTest, WhatIsSetForAllRunsComesFirst) {
  const auto options = ParseDriverOptions(
      {"--leak-check=no", "./app"},
      {{"rc", WordsOfOptions("# all runs\n--leak-check=full --error-exitcode=7 # exit\n--memcheck:num-callers=50\n"
                             "--massif:depth=3 --cachegrind:nonsense")}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->leak_check, LeakCheck::kNo);
  EXPECT_EQ(options->error_exitcode, 7);
  EXPECT_EQ(options->callers, 50u);
  EXPECT_EQ(options->command, std::vector<std::string>{"./app"});
  EXPECT_EQ(ParseDriverOptions({"./app"}, {{"VALGRIND_OPTS", {"-q", "--leak-chek=full"}}}).status().message(),
            "VALGRIND_OPTS: unknown option --leak-chek=full");
  EXPECT_EQ(ParseDriverOptions({"./app"}, {{"VALGRIND_OPTS", {"app"}}}).status().message(),
            "VALGRIND_OPTS: app is no option");
  EXPECT_FALSE(ParseDriverOptions({"--memcheck:", "./app"}).ok());
  EXPECT_FALSE(ParseDriverOptions({"--:v", "./app"}).ok());
}

TEST(DriverOptionsTest, TheProgramsOwnOptionsAreItsOwn) {
  const auto options = ParseDriverOptions({"-v", "--", "--strange", "-q"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->command, (std::vector<std::string>{"--strange", "-q"}));
  EXPECT_EQ(options->verbosity, 2);
  EXPECT_EQ(ParseDriverOptions({"./app", "-q", "--leak-check=full"})->command.size(), 3u);
}

TEST(DriverOptionsTest, HeuristicsAreChosen) {
  EXPECT_EQ(OptionsOf({}).heuristics, leak::kAllHeuristics);
  EXPECT_EQ(OptionsOf({"--leak-check-heuristics=none"}).heuristics, 0u);
  EXPECT_EQ(OptionsOf({"--leak-check-heuristics=stdstring,newarray"}).heuristics,
            1u << static_cast<int>(leak::Pointer::kStdString) | 1u << static_cast<int>(leak::Pointer::kNewArray));
  EXPECT_FALSE(ParseDriverOptions({"--leak-check-heuristics=stdstrings", "./app"}).ok());
}

TEST(DriverOptionsTest, WhatAsksForAnotherReportIsNotPassedOverInSilence) {
  EXPECT_EQ(OptionsOf({"--xtree-leak=yes", "--track-origins=yes"}).missed, std::vector<std::string>{"--xtree-leak=yes"});
  EXPECT_TRUE(OptionsOf({"--xtree-leak=no"}).missed.empty());
  EXPECT_TRUE(OptionsOf({"--xtree-leak=yes", "--xtree-leak=no"}).missed.empty()) << "the last one counts";
}

TEST(DriverOptionsTest, KindsAreSets) {
  EXPECT_EQ(OptionsOf({"--show-leak-kinds=definite,reachable"}).show,
            LeakKindSet::Of(LeakKind::kDefinite).With(LeakKind::kReachable));
  EXPECT_EQ(OptionsOf({"--errors-for-leak-kinds=none"}).errors, LeakKindSet());
  EXPECT_EQ(OptionsOf({"--show-possibly-lost=no"}).show, LeakKindSet::Of(LeakKind::kDefinite));
}

TEST(DriverOptionsTest, WhatRunsMainIsShownWhereItIsAskedFor) {
  EXPECT_FALSE(OptionsOf({}).below_main);
  EXPECT_TRUE(OptionsOf({"--show-below-main=yes"}).below_main);
  EXPECT_FALSE(OptionsOf({"--show-below-main=yes", "--show-below-main=no"}).below_main);
}

TEST(DriverOptionsTest, WhatHasNoMeaningHereIsNoted) {
  const DriverOptions options = OptionsOf({"--track-origins=yes", "--undef-value-errors=no", "-s"});
  EXPECT_EQ(options.ignored.size(), 3u);
}

TEST(DriverOptionsTest, WrongWordsAreErrors) {
  for (const char* word :
       {"--leak-check=perhaps", "--show-leak-kinds=lost", "--num-callers=0", "--num-callers=501",
        "--num-callers=x", "--error-exitcode=256", "--tool=massif", "--no-such-option",
        "--suppressions=", "--xml=yes", "--trace-children=1", "--leak-resolution=9"}) {
    EXPECT_FALSE(ParseDriverOptions({word, "./app"}).ok()) << word;
  }
  EXPECT_FALSE(ParseDriverOptions({"-q"}).ok());
  EXPECT_TRUE(ParseDriverOptions({"--version"}).ok());
  EXPECT_EQ(OptionsOf({"--xml=yes", "--xml-file=x"}).leak_check, LeakCheck::kFull);
}

TEST(DriverOptionsTest, LogNamesAreExpanded) {
  const auto variable = [](const std::string& name) -> std::optional<std::string> {
    return name == "WHO" ? std::optional<std::string>("me") : std::nullopt;
  };
  EXPECT_EQ(*ExpandLogName("a.%p.%q{WHO}.%n.%%", 42, 1, variable), "a.42.me.1.%");
  EXPECT_FALSE(ExpandLogName("a.%", 42, 1, variable).ok());
  EXPECT_FALSE(ExpandLogName("a.%q{NOBODY}", 42, 1, variable).ok());
  EXPECT_FALSE(ExpandLogName("a.%qWHO", 42, 1, variable).ok());
  EXPECT_FALSE(ExpandLogName("a.%x", 42, 1, variable).ok());
}

TEST(DriverOptionsTest, HelpNamesEveryOptionThatIsTaken) {
  const std::string help = DriverHelp();
  for (const char* name :
       {"--help", "--version", "--quiet", "--verbose", "--tool=", "--leak-check=",
        "--show-leak-kinds=", "--errors-for-leak-kinds=", "--show-reachable=",
        "--show-possibly-lost=", "--leak-check-heuristics=", "--leak-resolution=", "--num-callers=", "--show-below-main=", "--suppressions=",
        "--default-suppressions=", "--gen-suppressions=", "--error-exitcode=", "--log-file=",
        "--log-fd=", "--xml=", "--xml-file=", "--xml-fd=", "--xml-user-comment=",
        "--trace-children=", "--trace-children-skip=", "--trace-children-skip-by-arg=", "--child-silent-after-fork="}) {
    EXPECT_THAT(help, HasSubstr(name)) << name;
  }
}

TEST(DriverOptionsTest, HelpFitsATerminalAndNamesAllOfAFileName) {
  std::istringstream help(DriverHelp());
  for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 80u) << line;
  for (const char* field : {"%p", "%q{VAR}", "%n", "%%"}) {
    EXPECT_THAT(DriverHelp(), HasSubstr(std::string(field) + " ")) << field;
  }
}

TEST(DriverOptionsTest, TheManualPageExplainsWhatHelpNames) {
  std::ostringstream page;
  page << std::ifstream(MEMTRACE_SOURCE_DIR "/docs/man/memtrace-valgrind.1").rdbuf();
  const std::string help = DriverHelp();
  const std::regex option("\n  (-[a-z], )?--([a-z-]+)");
  int options = 0;
  for (std::sregex_iterator it(help.begin(), help.end(), option), end; it != end; ++it, ++options) {
    std::string name = "\\-\\-";
    for (const char c : (*it)[2].str()) name += c == '-' ? "\\-" : std::string(1, c);
    EXPECT_THAT(page.str(), HasSubstr(name));
  }
  EXPECT_EQ(options, 29);
}

}  // namespace
}  // namespace memtrace::report::valgrind
