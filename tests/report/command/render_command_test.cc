// `memtrace report` as a user runs it: the program itself, its exit status and
// what it prints where.

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/report/trace_builder.h"
#include "tests/temp_dir.h"

namespace memtrace::report {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

struct Result {
  int status = -1;
  std::string out, err;
};

class ReportCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    trace_ = directory_ / "app.mtr";
    TraceBuilder trace;
    trace.Module(1, format::kModulePermanent | format::kModuleExecutable, 0x400000, 0x500000,
                 0x400000, "/nowhere/app");
    ThreadScript& main = trace.Thread(1, 4242, "main");
    ThreadScript& worker = trace.Thread(2, 4243, "worker");
    main.At(1'000'000);
    for (uint64_t i = 0; i < 2000; ++i) {  // a site each: a report longer than a pipe
      const uint32_t stack = main.Stack({0x400100, 0x401000 + i});
      main.Malloc(0x10000 + 64 * i, 32, stack, 8);
    }
    main.At(2'000'000);
    main.At(600'000'000).Free(0x10000);
    worker.At(700'000'000).Malloc(0x900000, 100, worker.Stack({0x400200, 0x400300}), 4);
    trace.End(0, 1'000'000'000);
    ASSERT_TRUE(trace.WriteTo(trace_));
  }

  // Runs a shell command in which $M is memtrace and $T the trace.
  Result Shell(const std::string& command) {
    const std::string errors = directory_ / "stderr";
    const std::string script = absl::StrCat(
        "cd '", directory_.path(), "'; M='", MEMTRACE_BUILD_DIR, "/bin/memtrace'; T='", trace_,
        "'; unset NO_COLOR COLUMNS; export LC_ALL=C; { ", command, "; } 2>'", errors, "'");
    const std::string file = absl::StrCat(errors, ".sh");
    std::ofstream(file) << script;
    std::FILE* pipe = popen(absl::StrCat("bash '", file, "'").c_str(), "r");
    Result result;
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) result.out.append(buffer, n);
    const int status = pclose(pipe);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::stringstream text;
    text << std::ifstream(errors).rdbuf();
    result.err = text.str();
    fs::remove(errors);
    fs::remove(file);
    return result;
  }

  // One clear line on stderr, nothing on stdout, exit status 2.
  void ExpectRefused(const std::string& command, const std::string& said) {
    const Result result = Shell(command);
    EXPECT_EQ(result.status, 2) << command;
    EXPECT_EQ(result.out, "") << command;
    EXPECT_THAT(result.err, AllOf(StartsWith("memtrace: "), HasSubstr(said))) << command;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }

  size_t Files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(directory_.path()), {}));
  }

  TempDir directory_;
  std::string trace_;
};

TEST_F(ReportCommandTest, SaysItsVersionAndHelp) {
  EXPECT_THAT(Shell("$M --version").out, StartsWith("memtrace "));
  const Result help = Shell("$M --help");
  EXPECT_EQ(help.status, 0);
  for (const char* command : {"run", "report", "dump", "info", "pack", "Examples:"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
  }
  const Result report = Shell("$M report --help");
  EXPECT_THAT(report.out, HasSubstr("Usage: memtrace report [OPTIONS] FILE"));
  EXPECT_EQ(report.status, 0);
  for (const char* option :
       {"--format", "--output", "--from", "--to", "--thread", "--match", "--top", "--sort",
        "--full", "--color", "--width", "--debug-dir", "--sysroot", "--debuginfod", "Examples:"}) {
    EXPECT_THAT(report.out, HasSubstr(option));
  }
  EXPECT_EQ(Shell("$M").status, 2);
}

TEST_F(ReportCommandTest, HelpFitsATerminal) {
  for (const char* command : {"", "run", "report", "dump", "info", "pack"}) {
    for (const absl::string_view line :
         absl::StrSplit(Shell(absl::StrCat("$M ", command, " --help")).out, '\n')) {
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
}

TEST_F(ReportCommandTest, RefusesWrongWordsInOneLine) {
  ExpectRefused("$M reprot $T",
                "unknown command reprot (did you mean report?); see memtrace --help");
  ExpectRefused("$M report $T --fromat json", "unknown option --fromat (did you mean --format");
  ExpectRefused("$M report $T --fromat json", "see memtrace report --help");
  ExpectRefused("$M report", "FILE is required; see memtrace report --help");
  // Not what became of its value, nor what is behind the --.
  ExpectRefused("$M check --run --failon definite -- true", "unknown option --failon (did you mean --fail-on");
  ExpectRefused("$M check --run --bogus 3 -o x.xml -- true --quiet", "unknown option --bogus; see ");
  ExpectRefused("$M check $T --untl 3 -- $T", "unknown option --untl");
  ExpectRefused("$M info $T $T", "unexpected ");
  ExpectRefused("$M report $T --top many", "--top: \"many\" is not a whole number");
  ExpectRefused("$M report $T --top -1", "--top: \"-1\" is not a whole number");
  ExpectRefused("$M report $T --width 80.5", "--width: \"80.5\" is not a whole number");
}

TEST_F(ReportCommandTest, RefusesWrongValuesInOneLine) {
  ExpectRefused("$M report $T --format yaml",
                "--format: \"yaml\" is none of text, json, csv, mtrace");
  ExpectRefused("$M report $T --sort size", "--sort: ");
  ExpectRefused("$M report $T --from yesterday", "--from: ");
  ExpectRefused("$M report $T --from 2 --to 1", "--from must be before --to");
  ExpectRefused("$M report $T --match '('", "--match: ");
  ExpectRefused("$M report $T --thread nobody", "worker");
}

// A variable of a script that is not set: the option would be as if it were not there.
TEST_F(ReportCommandTest, EmptyValuesAreRefused) {
  for (const char* words :
       {"report $T --match ''", "report $T -o ''", "report --size= $T", "run --max-bytes= -- true", "check $T --baseline ''",
        "run -o '' -- true", "rings $T --start ''", "dump $T --from ''"}) {
    ExpectRefused(absl::StrCat("$M ", words), "the value is empty; leave the option out for its default");
  }
  EXPECT_EQ(Shell("$M run --quiet -o e.mtr -- sh -c '[ \"$1\" = \"--of=\" ]' sh --of= ''").status, 0) << "the program's own";
}

TEST_F(ReportCommandTest, OfSeveralWhatIsNotThereIsLeftOut) {
  const Result some = Shell("$M report $T nosuch.mtr");
  EXPECT_EQ(some.status, 2);
  EXPECT_THAT(some.out, HasSubstr("allocations"));
  EXPECT_THAT(some.err, HasSubstr("skipped nosuch.mtr: No such file or directory"));
  ExpectRefused("$M report nosuch.mtr neither.mtr", "no trace could be read: nosuch.mtr: No such file or directory");
}

TEST_F(ReportCommandTest, AFileThatIsNoTraceIsNotReplacedByOne) {
  ExpectRefused("echo int > a.c; $M pack $T -o a.c", "will not replace a.c: it is no trace");
  ExpectRefused("echo > log; $M import ftrace log -o a.c", "will not replace a.c: it is no trace");
  EXPECT_EQ(Shell("cat a.c").out, "int\n");
}

TEST_F(ReportCommandTest, RefusesWhatIsNoTraceWithCause) {
  ExpectRefused("$M report missing.mtr", "missing.mtr: No such file or directory");
  ExpectRefused("$M report /bin/sh", "/bin/sh");
  ExpectRefused(": > empty.mtr; $M report empty.mtr", "empty.mtr");
  ExpectRefused("mkdir empty; $M report empty", "empty is a directory without a trace in it");
}

TEST_F(ReportCommandTest, OptionsMayStandBeforeTheFile) {
  for (const char* options : {"--table leaks", "--debug-dir /tmp", "--top 3", "--full"}) {
    EXPECT_EQ(Shell(absl::StrCat("$M report ", options, " $T")).status, 0) << options;
  }
  const std::string text = Shell("$M report --table sizes --table threads,leaks $T").out;
  EXPECT_THAT(text, AllOf(HasSubstr("SIZES"), HasSubstr("THREADS"), HasSubstr("UNFREED"),
                          Not(HasSubstr("MAPPINGS"))));
}

TEST_F(ReportCommandTest, FiltersAreOfEveryFigureInEveryFormat) {
  struct Case {
    const char* filter;
    uint64_t allocations;
    const char* said;  // in the summary
  };
  const Case kCases[] = {
      {"--size 100", 1, "blocks of 100 B"},
      {"--size ..64", 2000, "blocks of up to 64 B"},
      {"--size 1K..", 0, "blocks of 1.00 KiB and more"},
      {"--lifetime ..1s", 1, "blocks that lived up to 1.00 s"},
      {"--lifetime 500ms..", 2000, "blocks that lived 500 ms and more"},
      {"--age 500ms..", 1999, "blocks live at the end, then 500 ms and more old"},
      {"--age 500ms.. --size 100", 0, "blocks of 100 B"},
      {"--module nowhere", 2001, "sites that have a frame of module /nowhere/: 2,001"},
      {"--module libc", 0, "sites that have a frame of module /libc/: 0"},
      {"--match 'app$' --thread worker", 1, "sites that match /app$/: 1"},
      {"--function main --file x", 0, "function /main/, file /x/"},
  };
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.filter);
    const auto json = nlohmann::json::parse(
        Shell(absl::StrCat("$M report $T --format json --full ", one.filter)).out);
    EXPECT_EQ(json["totals"]["allocations"], one.allocations);
    uint64_t sites = 0, points = 0, sizes = 0, threads = 0, modules = 0;
    for (const auto& site : json["sites"]) sites += site["allocations"].get<uint64_t>();
    for (const auto& point : json["timeline"]["points"]) {
      points += point["allocations"].get<uint64_t>();
    }
    for (const auto& size : json["sizes"]) sizes += size["allocations"].get<uint64_t>();
    for (const auto& thread : json["threads"]) threads += thread["allocations"].get<uint64_t>();
    for (const auto& module : json["modules"]) modules += module["allocations"].get<uint64_t>();
    EXPECT_EQ(sites, one.allocations);
    EXPECT_EQ(points, one.allocations);
    EXPECT_EQ(sizes, one.allocations);
    EXPECT_EQ(threads, one.allocations);
    EXPECT_EQ(modules, one.allocations);
    for (const char* by : {"site", "thread", "module", "folder"}) {
      const auto& stacked = json["timeline"]["stacked"][by];
      uint64_t sum = stacked["other"].back();
      for (const auto& series : stacked["series"]) {
        sum += series["live_bytes"].back().get<uint64_t>();
      }
      EXPECT_EQ(sum, json["totals"]["live_bytes"]) << by;
    }
    const std::string csv = Shell(absl::StrCat("$M report $T --format csv ", one.filter)).out;
    EXPECT_EQ(static_cast<uint64_t>(std::count(csv.begin(), csv.end(), '\n')),
              1 + one.allocations);
    const std::string text =
        Shell(absl::StrCat("$M report $T --width 200 --table summary ", one.filter)).out;
    EXPECT_THAT(text, HasSubstr(one.said));
    EXPECT_THAT(text, Not(HasSubstr("figures here are of all")));
  }
}

// The bytes of a block that the program told of are the other one's again where that alone is chosen,
// as in the report. Once with an index, whose stacks are not made for a second pass.
TEST_F(ReportCommandTest, ASeriesOfSomeSitesHasTheBytesThatAReportOfTheseHas) {
  TraceBuilder trace;
  constexpr uint32_t kFlags = format::kModulePermanent | format::kModuleExecutable;
  trace.Module(1, kFlags, 0x400000, 0x500000, 0x400000, "/nowhere/app");
  trace.Module(2, kFlags, 0x600000, 0x700000, 0x600000, "/nowhere/pool.so");
  ThreadScript& main = trace.Thread(1, 4242, "main");
  main.At(1'000'000);
  const uint32_t holder = main.Stack({0x400100}), teller = main.Stack({0x600100}),
                 other = main.Stack({0x600200});
  main.Malloc(0x100000, 100'000, holder, 0);
  main.Extended(format::ExtendedType::kCustomAlloc, {0x100010, 30'000, 0, teller});
  for (uint64_t i = 2; i < 500; ++i) {  // as large as a trace is that has an index
    main.At(i * 1'000'000);
    for (int j = 0; j < 100; ++j) main.Malloc(0x900000, 16, other, 8).Free(0x900000);
  }
  trace.End(0, 500'000'000);
  ASSERT_TRUE(trace.WriteTo(trace_));
  const auto series = [&](const std::string& options) {
    const Result result = Shell(absl::StrCat("$M report $T --series --format json ", options));
    EXPECT_EQ(result.status, 0) << result.err;
    return nlohmann::json::parse(result.out)["sites"];
  };
  for (const char* index : {"--index off", "--index kept", "--index kept"}) {
    SCOPED_TRACE(index);
    const auto all = series(index);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0]["live_bytes"].back(), 70'000);
    const auto some = series(absl::StrCat("--module 'app$' ", index));
    ASSERT_EQ(some.size(), 1u);
    EXPECT_EQ(some[0]["live_bytes"].back(), 100'000);
    EXPECT_EQ(some[0]["peak_bytes"], 100'000);
    const auto told = series(absl::StrCat("--match pool ", index));
    ASSERT_EQ(told.size(), 2u);
    EXPECT_EQ(told[0]["live_bytes"].back(), 30'000);
  }
  EXPECT_FALSE(fs::is_empty(directory_ / "kept")) << "there was no index";
  const auto report = nlohmann::json::parse(
      Shell("$M report $T --index off --format json --module 'app$'").out);
  EXPECT_EQ(report["totals"]["live_bytes"], 100'000);
}

TEST_F(ReportCommandTest, FiltersThatCannotBeAreRefused) {
  ExpectRefused("$M report $T --size many", "--size: \"many\" is no range");
  ExpectRefused("$M report $T --age 5", "--age: \"5\" is no range; write 1ms..2s");
  ExpectRefused("$M report $T --lifetime 2s..1s", "--lifetime: 2s is above 1s");
  ExpectRefused("$M report $T --function '('", "--function: \"(\" is not a regular expression");
  ExpectRefused("$M report $T --file '['", "--file: ");
  ExpectRefused("$M report $T --module '['", "--module: ");
  ExpectRefused("$M report $T --timeline-by weekday",
                "--timeline-by: \"weekday\" is none of site, thread, module, folder");
  for (const char* option : {"--size 1..", "--show-leak-kinds all", "--scan 1",
                             "--leak-resolution low", "--leak-check-heuristics none"}) {
    const std::string name(option, strcspn(option, " "));
    ExpectRefused(absl::StrCat("$M report $T $T ", option),
                  absl::StrCat(name, ": is for the report of one trace"));
  }
}

TEST_F(ReportCommandTest, TheHeapOverTimeByItsParts) {
  for (const char* by : {"site", "thread", "module", "folder"}) {
    const Result text = Shell(absl::StrCat("$M report $T --table growth --timeline-by ", by));
    EXPECT_EQ(text.status, 0);
    EXPECT_THAT(text.out, HasSubstr("HEAP OVER TIME BY"));
    EXPECT_THAT(text.out, HasSubstr("  live bytes every "));
    for (const absl::string_view line : absl::StrSplit(text.out, '\n')) EXPECT_LE(line.size(), 80u);
    const std::string csv =
        Shell(absl::StrCat("$M report $T --format csv --table timeline-by-", by)).out;
    EXPECT_THAT(csv, StartsWith("time_s,name,live_bytes\r\n"));
    EXPECT_GT(std::count(csv.begin(), csv.end(), '\n'), 50);
  }
  EXPECT_THAT(Shell("$M report $T --table growth --timeline-by thread").out,
              AllOf(HasSubstr("main 4242"), HasSubstr("worker 4243")));
  for (const char* table : {"lifetimes", "reallocs", "modules", "exchanges", "site-sizes"}) {
    EXPECT_EQ(Shell(absl::StrCat("$M report $T --format csv --table ", table)).status, 0) << table;
  }
}

TEST_F(ReportCommandTest, ColoursAreForTerminals) {
  EXPECT_THAT(Shell("$M report $T").out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(Shell("$M report $T --color always").out, HasSubstr("\x1b["));
  const std::string terminal = "script -qec \"$M report $T\" /dev/null < /dev/null";
  EXPECT_THAT(Shell("TERM=xterm " + terminal).out, HasSubstr("\x1b["));
  EXPECT_THAT(Shell("TERM=xterm NO_COLOR=1 " + terminal).out, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(Shell("TERM=dumb " + terminal).out, Not(HasSubstr("\x1b[")));
}

TEST_F(ReportCommandTest, WhatIsNoTextIsNotForTerminals) {
  std::vector<std::string> formats = {"pprof"};
  // A build that had no npm is without the page.
  if (Shell("$M report $T --format html > /dev/null").status == 0) formats.push_back("html");
  for (const std::string& format : formats) {
    const std::string arguments = " report $T --format " + format;
    const auto refused = Shell("script -qec \"$M" + arguments + "\" /dev/null < /dev/null");
    EXPECT_NE(refused.status, 0) << format;
    EXPECT_THAT(refused.out, HasSubstr("it is not for a terminal; name a file with -o FILE"));
    EXPECT_EQ(Shell("$M" + arguments + " | wc -c").status, 0);
  }
}

TEST_F(ReportCommandTest, TheLocaleChoosesTheCharacters) {
  for (const char c : Shell("$M report $T").out) EXPECT_TRUE(static_cast<signed char>(c) > 0);
  EXPECT_THAT(Shell("LC_ALL=C.UTF-8 $M report $T").out, HasSubstr("\u2588"));
}

TEST_F(ReportCommandTest, TheWidthIsTheUsers) {
  for (const std::string& command :
       {std::string("$M report $T --width 100"), std::string("COLUMNS=100 $M report $T")}) {
    size_t longest = 0;
    for (const absl::string_view line : absl::StrSplit(Shell(command).out, '\n')) {
      longest = std::max(longest, line.size());
    }
    EXPECT_GT(longest, 90u) << command;
    EXPECT_LE(longest, 100u) << command;
  }
}

TEST_F(ReportCommandTest, AFileIsWrittenWholeOrNotAtAll) {
  const Result result = Shell("$M report $T --format json -o out.json");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "");
  const auto report = nlohmann::json::parse(std::ifstream(directory_ / "out.json"));
  EXPECT_EQ(report["schema"], "memtrace-report/1");
  EXPECT_EQ(report["totals"]["allocations"], 2001);
  EXPECT_EQ(report["totals"]["live_blocks"], 2000);
  EXPECT_EQ(report["leaks_total"], 2000);
  EXPECT_EQ(Files(), 2u);
  ExpectRefused("$M report $T -o none/out.txt", "none/out.txt: No such file or directory");
  ExpectRefused("$M report $T --match '[' -o new.txt", "--match");
  EXPECT_EQ(Files(), 2u) << "nothing is left behind";
}

// As /dev/stdout is one, which root could replace.
TEST_F(ReportCommandTest, AnotherNameOfStandardOutputIsStandardOutput) {
  const Result plain = Shell("$M report $T --format csv");
  fs::create_symlink("/proc/self/fd/1", directory_ / "link");
  for (const char* to : {"link", "/proc/self/fd/1"}) {
    const Result piped = Shell(absl::StrCat("$M report $T --format csv -o ", to, " | cat"));
    EXPECT_EQ(piped.out, plain.out) << to << piped.err;
    const Result file = Shell(absl::StrCat("{ echo before; $M report $T --format csv -o ", to,
                                           "; } > redirected; cat redirected; rm redirected"));
    EXPECT_EQ(file.out, "before\n" + plain.out) << to << file.err;
  }
  EXPECT_TRUE(fs::is_symlink(directory_ / "link"));
}

TEST_F(ReportCommandTest, AReaderThatLeavesEndsItQuietly) {
  for (const char* format : {"text --full", "json", "csv", "mtrace"}) {
    const Result result = Shell(absl::StrCat("$M report $T --format ", format,
                                             " | true; echo ${PIPESTATUS[0]}"));
    EXPECT_EQ(result.out, "0\n") << format;
    EXPECT_EQ(result.err, "") << format;
  }
}

TEST_F(ReportCommandTest, AFullDiskIsAnError) {
  const Result result = Shell("$M report $T --format csv > /dev/full");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("cannot write standard output: No space left on device"));
}

TEST_F(ReportCommandTest, EveryCommandsFullDiskIsAnError) {
  for (const char* words : {"--help", "report --help", "--version", "pack $T -o $T.packed", "dump $T", "info $T"}) {
    const Result result = Shell(absl::StrCat("$M ", words, " > /dev/full"));
    EXPECT_EQ(result.status, 2) << words;
    EXPECT_THAT(result.err, ContainsRegex("cannot write (to )?standard output: ")) << words;
  }
}

TEST_F(ReportCommandTest, TheTraceIsNeverReplacedByWhatIsMadeOfIt) {
  const auto content = [&] {
    std::stringstream bytes;
    bytes << std::ifstream(trace_, std::ios::binary).rdbuf();
    return bytes.str();
  };
  const std::string before = content();
  fs::create_symlink(trace_, directory_ / "link.mtr");
  for (const char* command : {"report", "report --format json", "dump", "pack"}) {
    ExpectRefused(absl::StrCat("$M ", command, " $T -o app.mtr"),
                  "cannot write app.mtr: it is the trace itself; give another name with -o");
    ExpectRefused(absl::StrCat("$M ", command, " link.mtr -o $T"), "it is the trace itself");
  }
  EXPECT_EQ(content(), before);
}

// They cannot say it in their files.
TEST_F(ReportCommandTest, OtherToolsFilesOfACutTraceAreNotSilent) {
  const auto bytes = fs::file_size(trace_);
  fs::resize_file(trace_, bytes - bytes / 4);
  for (const char* format : {"csv", "mtrace", "massif", "dhat", "folded", "pprof", "speedscope", "callgrind", "heaptrack"}) {
    const Result result = Shell(absl::StrCat("$M report $T --format ", format, " -o out"));
    EXPECT_EQ(result.status, 0) << format << result.err;
    EXPECT_THAT(result.err, AllOf(StartsWith("memtrace: "), HasSubstr("app.mtr: "))) << format;
  }
  EXPECT_THAT(Shell("$M report $T --series --format csv -o out").err, HasSubstr("app.mtr: "));
}

// The first file that was opened would have been descriptor 1: the trace itself.
TEST_F(ReportCommandTest, AClosedStandardOutputIsNoFileToWriteOver) {
  const auto bytes = fs::file_size(trace_);
  for (const char* command : {"report", "report --format json", "dump", "pack"}) {
    const Result result = Shell(absl::StrCat("ln -sfn /proc/self/fd/1 out; $M ", command, " $T -o out >&-; s=$?; test -L out && exit $s; exit 99"));
    EXPECT_NE(result.status, 0) << command;
    EXPECT_NE(result.status, 99) << command << ": the link was replaced";
    EXPECT_EQ(fs::file_size(trace_), bytes) << command;
  }
  EXPECT_EQ(Shell("$M report $T >&-").status, 2);
}

TEST_F(ReportCommandTest, TablesWithoutTheSummarySayWhatTheyAreOf) {
  const auto tables = [&](const std::string& options) { return Shell("$M report $T --table sites " + options).out; };
  EXPECT_THAT(tables(""), Not(HasSubstr("Only")));
  EXPECT_THAT(tables("--thread worker --from 10%"),
              StartsWith("  Only       blocks allocated from 100 ms to 1.00 s\n"
                         "  Only       blocks that threads called worker allocated\n"));
}

TEST_F(ReportCommandTest, RingsTakeTheFiltersOfAReport) {
  const auto rings = [&](const std::string& options) {
    return Shell("$M rings $T --no-static --format csv " + options + " | sed -n 2p").out;
  };
  const auto of = [&](const std::string& options) { return Shell("$M rings $T --no-static " + options).out; };
  EXPECT_THAT(of("--size 33.."), AllOf(HasSubstr("Only blocks of 33 B and more"), HasSubstr("  100 ")));
  EXPECT_EQ(rings("--size 33.."), rings("--thread worker"));
  EXPECT_EQ(rings("--size 33.."), rings("--age ..500ms"));
  EXPECT_EQ(rings("--at 650ms"), rings("--to 650ms"));
  EXPECT_NE(rings("--at 650ms"), rings(""));
  EXPECT_THAT(of("--lifetime ..599ms"), AllOf(HasSubstr("Only blocks that lived up to 599 ms"), HasSubstr("32 ")));
  EXPECT_EQ(rings("--module nowhere/app"), rings(""));
  EXPECT_THAT(of("--function '^nobody$'"), HasSubstr("frame of function /^nobody$/: 0"));
  ExpectRefused("$M rings $T --function '('", "--function: ");
  ExpectRefused("$M rings $T --measure resident --size 33..", "--measure resident: ");
}

TEST_F(ReportCommandTest, NumbersThatAreTooLargeAreRefused) {
  ExpectRefused("$M report $T --top 99999999999999999999", "is too large");
  ExpectRefused("$M report $T --width 99999999999999999999", "is too large");
  for (const char* command : {"report $T", "rings $T", "diff $T $T"}) {
    for (const char* width : {"0", "10", "59", "201"}) {
      ExpectRefused(absl::StrCat("$M ", command, " --width ", width), "is not from 60 to 200");
    }
  }
  for (const char* command : {"report", "dump"}) {
    for (const char* time : {"1e300", "nan", "inf", "0x10", "-1", "18446744073709551616", "' '"}) {
      for (const char* option : {"--from", "--to"}) {
        ExpectRefused(absl::StrCat("$M ", command, " $T ", option, " ", time),
                      absl::StrCat(option, ": \""));
      }
    }
    ExpectRefused(absl::StrCat("$M ", command, " $T --from 90% --to 10%"),
                  "--from must be before --to");
  }
}

TEST_F(ReportCommandTest, TheDumpTakesTheSameTimes) {
  const auto events = [&](const std::string& options) {
    return Shell("$M dump $T " + options + " | grep -c -E ' (malloc|free) '").out;
  };
  EXPECT_EQ(events("--from 65%"), "1\n");
  EXPECT_EQ(events("--from 650ms"), "1\n");
  EXPECT_EQ(events("--to 0.5"), "2000\n");
  EXPECT_EQ(events("--from 500ms --to 65%"), "1\n");
}

TEST_F(ReportCommandTest, NamesWithControlCharactersStayNames) {
  const std::string name = "$'a\\e[31mb\\nc\\xff.mtr'", escaped = "a\\x1b[31mb\\x0ac\\xff.mtr";
  for (const char* command : {"report", "dump", "info", "pack", "run --"}) {
    const Result result = Shell(absl::StrCat("$M ", command, " ./", name));
    EXPECT_NE(result.status, 0) << command;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(escaped)) << command;
  }
  Shell("cp $T ./" + name);
  for (const char* command : {"report", "dump", "info", "pack"}) {
    const Result result = Shell(absl::StrCat("$M ", command, " ", name));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, Not(HasSubstr("\x1b"))) << command;
    EXPECT_THAT(result.out, Not(HasSubstr("\xff"))) << command;
  }
  const Result run = Shell("$M run -o " + name + " -- true");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("; next: memtrace report $'" + escaped + "'\n"));
}

TEST_F(ReportCommandTest, DirectoriesOfFilesMustBeThere) {
  for (const char* command : {"report $T", "check $T", "info $T", "rings $T", "diff $T $T", "compare $T $T",
                              "trend hist --add $T"}) {
    ExpectRefused(absl::StrCat("$M ", command, " --sysroot none"), "--sysroot: none: No such file or directory");
  }
  ExpectRefused("$M report $T --debug-dir $T", " is no directory");
}

TEST_F(ReportCommandTest, RangesAndThreadsSelectBlocks) {
  const auto totals = [&](const std::string& options) {
    return nlohmann::json::parse(Shell("$M report $T --format json " + options).out)["totals"];
  };
  EXPECT_EQ(totals("--from 65%")["allocations"], 1);
  EXPECT_EQ(totals("--from 650ms")["bytes_allocated"], 100);
  EXPECT_EQ(totals("--to 0.5")["allocations"], 2000);
  EXPECT_EQ(totals("--thread worker")["allocations"], 1);
  EXPECT_EQ(totals("--thread 4242")["allocations"], 2000);
  for (const char* command : {"report", "rings"}) {
    ExpectRefused(absl::StrCat("$M ", command, " $T --thread ''"),
                  "--thread: a thread has a name or a tid, and this is empty");
  }
  EXPECT_EQ(totals("--age 0..")["frees"], 0) << "of what is live";
  EXPECT_EQ(totals("--age 0..")["allocations"], totals("")["live_blocks"]);
  EXPECT_THAT(Shell("$M report $T --from 65%").out, HasSubstr("Only       blocks allocated from "
                                                              "650 ms to 1.00 s"));
}

TEST_F(ReportCommandTest, OfTheBlocksOfAThreadItIsSaidWhoFreedThem) {
  TraceBuilder trace;
  ThreadScript& maker = trace.Thread(1, 6536, "maker");
  ThreadScript& user = trace.Thread(2, 6537, "user");
  trace.Thread(3, 6538, "idle").At(500'000).Malloc(0x9010, 9).Free(0x9010).At(600'000);
  maker.At(1'000'000).Malloc(0x1010, 100).Malloc(0x2010, 50).Free(0x2010).At(2'000'000);
  user.At(3'000'000).Malloc(0x3010, 7).Free(0x1010).At(4'000'000);
  trace.End(0, 5'000'000);
  ASSERT_TRUE(trace.WriteTo(directory_ / "passed.mtr"));
  const std::string report = "$M report passed.mtr --thread 6536 ";
  EXPECT_EQ(Shell(report + "--format csv --table exchanges").out,
            "from_tid,to_tid,blocks,bytes\r\n6536,6537,1,100\r\n");
  EXPECT_THAT(Shell(report + "--table threads").out, HasSubstr("maker 6536 -> user 6537"));
  const auto json = nlohmann::json::parse(Shell(report + "--format json").out);
  ASSERT_EQ(json["thread_exchanges"].size(), 1u);
  EXPECT_EQ(json["thread_exchanges"][0]["to_tid"], 6537);
  uint64_t frees = 0;
  for (const auto& thread : json["threads"]) frees += thread["frees"].get<uint64_t>();
  EXPECT_EQ(json["threads"].size(), 2u) << "not the one that has nothing to do with them";
  EXPECT_EQ(json["totals"]["frees"], 2);
  EXPECT_EQ(frees, 2u);
}

TEST_F(ReportCommandTest, ModulesThatAreNotHereAreSaid) {
  const std::string text = Shell("$M report $T").out;
  EXPECT_THAT(text, HasSubstr("/nowhere/app was not found"));
  EXPECT_THAT(text, HasSubstr("app+0x"));
}

TEST_F(ReportCommandTest, PrintsMtracesWords) {
  const std::string text = Shell("$M report $T --format mtrace --thread worker").out;
  EXPECT_EQ(text,
            "Only blocks that threads called worker allocated.\n"
            "\nMemory not freed:\n-----------------\n           Address     Size     Caller\n"
            "0x0000000000900000     0x64  at app+0x300\n");
}

}  // namespace
}  // namespace memtrace::report
