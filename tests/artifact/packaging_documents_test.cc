// The manual pages and the completions of three shells say what the program
// says of itself: `memtrace COMMAND --help` is the truth they are held to.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/artifact/packaging_shell.h"

namespace memtrace::packaging {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

const std::string kMemtrace = MEMTRACE_BUILD_DIR "/bin/memtrace";
const std::string kMan = MEMTRACE_SOURCE_DIR "/docs/man/";
const std::string kCompletions = MEMTRACE_SOURCE_DIR "/completions/";

// Every match of the first group of `pattern`.
Names FindAll(const std::string& text, const std::string& pattern) {
  Names found;
  const std::regex expression(pattern, std::regex::ECMAScript | std::regex::multiline);
  for (std::sregex_iterator it(text.begin(), text.end(), expression), end; it != end; ++it) {
    found.insert((*it)[1]);
  }
  return found;
}

Names Lines(const std::string& text) {
  Names lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.insert(line);
  }
  return lines;
}

Names Minus(const Names& all, const Names& without) {
  Names rest;
  for (const std::string& name : all) {
    if (!without.contains(name)) rest.insert(name);
  }
  return rest;
}

Names Commands() {
  const CommandResult help = Shell(kMemtrace + " --help");
  const size_t start = help.output.find("ommands:\n");  // Commands, Subcommands
  if (help.exit_status != 0 || start == std::string::npos) return {};
  const std::string list = help.output.substr(start);
  return FindAll(list.substr(0, list.find("\n\n")), "^  ([a-z]+) ");
}

// The long options that `--help` lists, as lines that begin with an option.
// `command` is empty for the program itself.
Names OptionsOfHelp(const std::string& command) {
  const CommandResult help = Shell(kMemtrace + " " + command + " --help");
  EXPECT_EQ(help.exit_status, 0) << help.output;
  Names options;
  std::istringstream lines(help.output);
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_search(line, std::regex("^ {1,8}-"))) continue;
    options.merge(FindAll(line.substr(0, line.find("  ", line.find('-'))), "(--[a-z][a-z0-9-]*)"));
  }
  return options;
}

std::string PageOf(const std::string& command) {
  return kMan + (command.empty() ? "memtrace.1" : "memtrace-" + command + ".1");
}

// The page as a person reads it, with ASCII hyphens.
std::string Rendered(const std::string& page) {
  return Shell("groff -man -Tascii -P-cbou -rLL=100n '" + page + "'").output;
}

// The options that the page explains: each begins a line of its own.
Names OptionsOfPage(const std::string& page) {
  Names options;
  std::istringstream lines(Rendered(page));
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, std::regex("^ {3,10}-"))) {
      options.merge(FindAll(line, "(--[a-z][a-z0-9-]*)"));
    }
  }
  return options;
}

std::vector<std::string> ProgramAndCommands() {
  std::vector<std::string> all = {""};
  for (const std::string& command : Commands()) all.push_back(command);
  return all;
}

TEST(DocumentsTest, ProgramListsItsCommands) {
  const Names commands = Commands();
  for (const char* command : {"run", "report", "leaks", "diff", "trend", "check", "compare", "dump", "info",
                              "pack"}) {
    EXPECT_TRUE(commands.contains(command)) << command;
  }
}

TEST(DocumentsTest, HelpIsInItsOwnWords) {
  for (const std::string& command : ProgramAndCommands()) {
    const std::string help = Shell(kMemtrace + " " + command + " --help").output;
    EXPECT_EQ(help.find("REQUIRED"), std::string::npos) << help;
    EXPECT_EQ(help.find("Excludes:"), std::string::npos) << help;
    // An option's value has a name, "N", and not "N:INT in [1 - 19]", "WHAT:{yes,no}", "INT".
    for (const std::string& line : Lines(help)) {
      if (!std::regex_search(line, std::regex("^ {1,8}-"))) continue;
      const std::string option = line.substr(0, line.find("  ", line.find('-')));
      EXPECT_FALSE(std::regex_search(option, std::regex(":[A-Z{]| in \\[| U?INT| FLOAT"))) << line;
    }
  }
}

TEST(ManPageTest, ExistsForEveryCommandAndExplainsExactlyItsOptions) {
  for (const std::string& command : ProgramAndCommands()) {
    ASSERT_TRUE(fs::exists(PageOf(command))) << PageOf(command);
    EXPECT_EQ(OptionsOfPage(PageOf(command)), OptionsOfHelp(command)) << PageOf(command);
  }
}

TEST(ManPageTest, OfTheProgramNamesEveryCommand) {
  const std::string page = Rendered(PageOf(""));
  for (const std::string& command : Commands()) {
    EXPECT_NE(page.find("memtrace-" + command + "(1)"), std::string::npos) << command;
  }
}

TEST(ManPageTest, OfTheLibraryExplainsEveryVariable) {
  const Names variables =
      FindAll(ReadFile(MEMTRACE_SOURCE_DIR "/preload/flags.inc"), "^MEMTRACE_FLAG\\(\"([A-Z_]+)\"");
  ASSERT_FALSE(variables.empty());
  Names explained;
  for (const std::string& name :
       FindAll(Rendered(kMan + "libmemtrace.7"), "^ +MEMTRACE_([A-Z_]+)=")) {
    explained.insert(name);
  }
  EXPECT_EQ(explained, variables);
}

TEST(ManPageTest, IsCleanRoff) {
  int pages = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kMan)) {
    const std::string page = entry.path().string();
    const CommandResult man = Shell(
        "LC_ALL=C.UTF-8 MANROFFSEQ= MANWIDTH=80 man --warnings -E UTF-8 -l '" + page + "' >/dev/null");
    EXPECT_EQ(man.exit_status, 0) << man.output;
    EXPECT_EQ(man.output, "") << page;
    const CommandResult groff = Shell("groff -man -ww -z -Kutf8 -Tutf8 '" + page + "'");
    EXPECT_EQ(groff.output, "") << page;
    ++pages;
  }
  EXPECT_GE(pages, 7);
}

TEST(ManPageTest, RefersOnlyToPagesThatExist) {
  int references = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kMan)) {
    for (const std::string& reference :
         FindAll(Rendered(entry.path().string()), "((lib)?memtrace[a-z-]*\\([17]\\))")) {
      const size_t paren = reference.find('(');
      const std::string file =
          reference.substr(0, paren) + "." + reference.substr(paren + 1, 1);
      EXPECT_TRUE(fs::exists(kMan + file)) << entry.path() << " refers to " << reference;
      ++references;
    }
  }
  EXPECT_GT(references, 10) << "nothing was rendered";
}

std::vector<fs::path> MarkdownPages() {
  std::vector<fs::path> pages = {MEMTRACE_SOURCE_DIR "/README.md"};
  for (const fs::directory_entry& entry : fs::directory_iterator(MEMTRACE_SOURCE_DIR "/docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  EXPECT_GE(pages.size(), 5u);
  return pages;
}

TEST(MarkdownTest, LinksOnlyToFilesThatExist) {
  for (const fs::path& page : MarkdownPages()) {
    for (const std::string& link : FindAll(ReadFile(page), "\\]\\(([^)#:]+)(#[^)]*)?\\)")) {
      EXPECT_TRUE(fs::exists(page.parent_path() / link)) << page << " links to " << link;
    }
  }
}

// `bench/readers`, `tests/e2e/kill_test`, `preload/trace_file.h`: a document speaks of what there is.
TEST(MarkdownTest, NamesFilesThatThereAre) {
  const std::string source = MEMTRACE_SOURCE_DIR "/";
  int named = 0;
  for (const fs::path& page : MarkdownPages()) {
    for (const std::string& path : FindAll(
             ReadFile(page),
             "`((?:bench|cmake|completions|docs|examples|format|include|preload|report|scripts|"
             "symbolizer|tests|web)/[A-Za-z0-9_./-]*[A-Za-z0-9_])[` ]")) {
      ++named;
      EXPECT_TRUE(fs::exists(source + path) || fs::exists(source + path + ".cc"))
          << page << " names " << path;
    }
  }
  EXPECT_GE(named, 50);
}

// The output that the documents show has the lines of the examples as they are: in each
// such line something is called.
TEST(MarkdownTest, ShowsLinesOfExamplesThatCallSomething) {
  int shown = 0;
  for (const char* page : {"/README.md", "/docs/report.md"}) {
    for (const std::string& place : FindAll(ReadFile(std::string(MEMTRACE_SOURCE_DIR) + page),
                                            "[A-Za-z]+  (examples/[a-z_]+\\.cc?:[0-9]+)")) {
      const size_t colon = place.find(':');
      std::istringstream source(
          ReadFile(std::string(MEMTRACE_SOURCE_DIR) + "/" + place.substr(0, colon)));
      std::string line;
      for (int i = std::stoi(place.substr(colon + 1)); i > 0; --i) std::getline(source, line);
      EXPECT_TRUE(std::regex_search(line, std::regex("[A-Za-z_]+\\("))) << page << ": " << place
                                                                        << " is: " << line;
      ++shown;
    }
  }
  EXPECT_GE(shown, 5);
}

// The labels of the summary and the headings, in their order: what a report consists of.
std::vector<std::string> PartsOfReport(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream lines(text);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, match, std::regex("^(  [A-Z][a-z]+|[A-Z][A-Z ]+[A-Z])  "))) {
      parts.push_back(match[1]);
    }
  }
  return parts;
}

// The reports of examples/leaks that the documents show are as one is today.
TEST(MarkdownTest, ShowsReportsAsTheyAre) {
  TempDir directory;
  const std::string trace = "'" + directory / "leaks.mtr" + "'";
  const CommandResult report = Shell(kMemtrace + " run -q -o " + trace + " -- " MEMTRACE_BUILD_DIR
                                     "/examples/leaks && " + kMemtrace + " report " + trace);
  ASSERT_EQ(report.exit_status, 0) << report.output;
  const std::vector<std::string> today = PartsOfReport(report.output);
  for (const auto& [page, least] : {std::pair("/README.md", 15), std::pair("/docs/report.md", 13)}) {
    const std::string text = ReadFile(std::string(MEMTRACE_SOURCE_DIR) + page);
    const size_t begin = text.find("\nmemtrace report  leaks.mtr\n");
    ASSERT_NE(begin, std::string::npos) << page;
    const std::vector<std::string> shown =
        PartsOfReport(text.substr(begin, text.find("\n```", begin) - begin));
    ASSERT_GE(shown.size(), static_cast<size_t>(least)) << page;
    ASSERT_LE(shown.size(), today.size()) << page;
    EXPECT_EQ(shown, std::vector<std::string>(today.begin(), today.begin() + shown.size())) << page;
  }
}

// What bash offers after these words; the last one is being typed.
Names BashOffers(const std::vector<std::string>& words) {
  std::string array, line;
  for (const std::string& word : words) {
    array += "'" + word + "' ";
    line += (line.empty() ? "" : " ") + word;
  }
  const CommandResult result = Shell(
      "bash --norc --noprofile -c '\nsource /usr/share/bash-completion/bash_completion\n"
      "source \"$0\"\nCOMP_LINE=\"$1\"; COMP_POINT=${#COMP_LINE}; shift; COMP_WORDS=(\"$@\")\n"
      "COMP_CWORD=$(($# - 1)); _memtrace memtrace\nprintf \"%s\\n\" \"${COMPREPLY[@]}\"' '" +
      kCompletions + "memtrace.bash' '" + line + "' " + array);
  EXPECT_EQ(result.exit_status, 0) << result.output;
  Names offers;
  for (std::string offer : Lines(result.output)) {
    while (offer.ends_with(' ') || offer.ends_with('=')) offer.pop_back();
    offers.insert(offer);
  }
  return offers;
}

TEST(BashCompletionTest, OffersExactlyTheCommandsAndTheirOptions) {
  EXPECT_EQ(BashOffers({"memtrace", ""}), Commands());
  EXPECT_EQ(BashOffers({"memtrace", "--"}), OptionsOfHelp(""));
  for (const std::string& command : Commands()) {
    EXPECT_EQ(BashOffers({"memtrace", command, "--"}), OptionsOfHelp(command)) << command;
  }
}

TEST(BashCompletionTest, LeavesWhatFollowsTheProgramToTheProgram) {
  EXPECT_EQ(BashOffers({"memtrace", "run", "-o", "x.mtr", "--", "memtrace", "in"}), Names{"info"});
  EXPECT_EQ(BashOffers({"memtrace", "run", "memtrace", "report", "--debuginfo"}),
            Names{"--debuginfod"});
}

TEST(BashCompletionTest, OffersTheReportFormatsThatTheProgramAccepts) {
  const Names formats = BashOffers({"memtrace", "report", "--format", ""});
  EXPECT_TRUE(formats.contains("text"));
  EXPECT_TRUE(formats.contains("json"));
  const CommandResult wrong = Shell(kMemtrace + " report --format nonsense /dev/null");
  EXPECT_EQ(wrong.exit_status, 2) << wrong.output;
  for (const std::string& format : formats) {
    EXPECT_NE(wrong.output.find(format), std::string::npos) << format << "\n" << wrong.output;
  }
}

Names FishOffers(const std::string& line) {
  const TempDir home;  // fish writes there
  const CommandResult result =
      Shell("HOME='" + home.path() + "' fish --no-config -c 'source " + kCompletions +
            "memtrace.fish; complete -C \"" + line + "\"'");
  EXPECT_EQ(result.exit_status, 0) << result.output;
  Names offers;
  for (const std::string& offer : Lines(result.output)) {
    offers.insert(offer.substr(0, offer.find('\t')));
  }
  return offers;
}

TEST(FishCompletionTest, OffersExactlyTheCommandsAndTheirOptions) {
  EXPECT_EQ(FishOffers("memtrace "), Commands());
  for (const std::string& command : ProgramAndCommands()) {
    const std::string line = command.empty() ? "memtrace --" : "memtrace " + command + " --";
    Names offers;
    for (std::string offer : FishOffers(line)) {
      if (offer.ends_with('=')) offer.pop_back();
      offers.insert(offer);
    }
    EXPECT_EQ(offers, OptionsOfHelp(command)) << command;
  }
}

TEST(ZshCompletionTest, IsValidAndNamesEveryCommandAndOption) {
  const CommandResult syntax = Shell("zsh -f -n '" + kCompletions + "_memtrace'");
  EXPECT_EQ(syntax.exit_status, 0) << syntax.output;
  EXPECT_EQ(syntax.output, "");
  const std::string text = ReadFile(kCompletions + "_memtrace");
  // The branch of each command, and what is before the first for the program itself.
  for (const std::string& command : ProgramAndCommands()) {
    const size_t start = command.empty() ? 0 : text.find("\n    " + command + ")");
    ASSERT_NE(start, std::string::npos) << command;
    std::string branch = text.substr(start, text.find(";;", start) - start);
    for (const std::string& list : FindAll(branch, R"(\$\{([a-z_]+)\[@\]\})")) {
      const size_t begin = text.find("local -a " + list + "=(");
      ASSERT_NE(begin, std::string::npos) << list;
      branch += text.substr(begin, text.find("\n  )", begin) - begin);
    }
    EXPECT_EQ(Minus(OptionsOfHelp(command), FindAll(branch, "(--[a-z][a-z0-9-]*)")), Names{})
        << "not in the completion of: " << command;
  }
}

// memtrace-valgrind, which takes Valgrind's options, those with a value behind a =.
TEST(ValgrindCompletionTest, OffersExactlyTheOptionsInThreeShells) {
  const CommandResult help = Shell(kMemtrace + "-valgrind --help");
  ASSERT_EQ(help.exit_status, 0) << help.output;
  Names options;
  std::istringstream lines(help.output);
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_search(line, std::regex("^ +-"))) continue;
    options.merge(FindAll(line.substr(0, line.find("  ", line.find('-'))), "(--[a-z][a-z0-9-]*)"));
  }
  EXPECT_GE(options.size(), 20u) << help.output;
  const std::string bash = kCompletions + "memtrace-valgrind.bash";
  const std::string script =
      "bash --norc --noprofile -c '\nsource /usr/share/bash-completion/bash_completion\nsource \"$0\"\n"
      "COMP_LINE=\"memtrace-valgrind $1\"; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(memtrace-valgrind \"$1\")\n"
      "COMP_CWORD=1; _memtrace_valgrind memtrace-valgrind 2>/dev/null\n"
      "printf \"%s\\n\" \"${COMPREPLY[@]}\"' '" + bash + "' ";
  Names offers;
  for (std::string offer : Lines(Shell(script + "--").output)) {
    if (offer.ends_with('=')) offer.pop_back();
    offers.insert(offer);
  }
  EXPECT_EQ(offers, options);
  EXPECT_EQ(Lines(Shell(script + "--leak-resolution=").output), (Names{"low", "med", "high"}));

  const TempDir home;  // fish writes there
  Names of_fish;
  for (const std::string& offer :
       Lines(Shell("HOME='" + home.path() + "' fish --no-config -c 'source " + kCompletions +
                   "memtrace-valgrind.fish; complete -C \"memtrace-valgrind --\"'").output)) {
    std::string name = offer.substr(0, offer.find('\t'));
    if (name.ends_with('=')) name.pop_back();
    of_fish.insert(name);
  }
  EXPECT_EQ(of_fish, options);

  const CommandResult syntax = Shell("zsh -f -n '" + kCompletions + "_memtrace-valgrind'");
  EXPECT_EQ(syntax.exit_status, 0) << syntax.output;
  const std::string zsh = ReadFile(kCompletions + "_memtrace-valgrind");
  EXPECT_EQ(Minus(options, FindAll(zsh, "(--[a-z][a-z0-9-]*)")), Names{});
}

}  // namespace
}  // namespace memtrace::packaging
