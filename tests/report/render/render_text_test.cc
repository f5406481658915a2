// The text report as a whole, against files that a person has read
// (golden/render_*.txt), and what must hold for any trace.
//
// MEMTRACE_UPDATE_GOLDEN=1 writes the files anew; read the difference.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/render/text_report.h"
#include "report/words/escape.h"
#include "tests/report/render/render_as_text.h"
#include "tests/report/render/render_made_up.h"

namespace memtrace::report::render {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A program with a cache that grows, a loop of temporaries, two leaks.
void FillBusy(MadeUp& trace) {
  Analysis& a = trace.analysis;
  const StackId leak = trace.Stack({{"operator new[](unsigned long)", "", 0, kLibc},
                                    {"make_table", "/work/src/table.cc", 23},
                                    {"main", "/work/src/main.cc", 40},
                                    Libc("__libc_start_call_main"), Libc("_start")});
  const StackId cache = trace.Stack(
      {{"std::_Rb_tree<std::string, Entry>::_M_insert_node(std::_Rb_tree_node_base*)",
        "/usr/include/c++/12/bits/stl_tree.h", 2384, kApp, true},
       {"engine::Cache<std::string, engine::Entry, std::less<std::string> >::Insert(std::string "
        "const&, engine::Entry&&)",
        "/work/src/engine/cache.cc", 117},
       {"engine::Server::Handle(engine::Request const&)", "/work/src/engine/server.cc", 88},
       {"main", "/work/src/main.cc", 44}, Libc("__libc_start_call_main"), Libc("_start")});
  const StackId file = trace.Stack({Libc("_IO_file_doallocate"), Libc("fopen"),
                                    {"open_log", "/work/src/log.c", 12},
                                    {"main", "/work/src/main.cc", 41}, Libc("_start")});
  const StackId temporary = trace.Stack({{"format_line", "/work/src/log.c", 60},
                                         {"main", "/work/src/main.cc", 50}, Libc("_start")});
  std::vector<Step> deep;
  for (uint32_t i = 0; i < 30; ++i) deep.push_back({"walk", "/work/src/walk.c", 100 + i});
  const StackId recursion = trace.Stack(deep);
  trace.EndWithMarker(recursion, format::StackMarker::kTruncated);

  trace.AddSite(cache, 40000, 1100, 20000).growth = {
      .verdict = Growth::Verdict::kGrowing, .bytes_per_s = 14.6 * 1048576,
      .bytes_per_s_low = 12.0 * 1048576, .bytes_per_allocation = 700.5, .blocks_per_s = 13900, .confidence = 0.987};
  trace.AddSite(leak, 1, 256, 1).function = format::AllocFunction::kCalloc;
  trace.AddSite(file, 1, 472, 1);
  Site& site = trace.AddSite(temporary, 500000, 48, 0);
  site.growth.verdict = Growth::Verdict::kSawtooth;
  site.temporary = 499990;
  site.wasted_bytes = 4000000;
  trace.AddSite(recursion, 300, 64, 300);

  a.totals.peak_live_bytes = 22000000 + 256 + 472 + 19200;
  a.totals.peak_live_blocks = 20302;
  a.totals.peak_time_ns = 1'470'000'000;
  a.totals.wasted_bytes = 4000000;
  a.totals.temporary_allocations = 499990;
  a.coverage.events = 1040300;
  a.coverage.marked_stacks = 300;
  a.coverage.tool_memory_bytes = 2 << 20;
  a.coverage.notes.push_back({"the program closed our file once; it was opened again"});
  a.faults.minor = 5800;
  a.faults.major = 3;
  a.faults.tool_minor = 210;
  a.faults.peak_rss_bytes = 26 << 20;
  a.faults.correlation_known = true;
  a.faults.correlation_live = 0.93;
  a.faults.correlation_allocated = 0.31;
  a.timeline_interval_ns = 10'000'000;
  for (uint64_t i = 1; i <= 200; ++i) {
    TimelinePoint point;
    point.time_ns = i * 10'000'000;
    const double share = i <= 147 ? static_cast<double>(i) / 147 : 1 - 0.3 * (i - 147) / 53.0;
    point.live_bytes = static_cast<uint64_t>(share * static_cast<double>(a.totals.peak_live_bytes));
    point.max_live_bytes = point.live_bytes;
    point.rss_bytes = (4 << 20) + std::min<uint64_t>(i, 147) * 150000;
    point.minor_faults = i == 60 ? 256 : i <= 147 ? 37 : 0;
    point.major_faults = i == 2 ? 3 : 0;
    a.timeline.push_back(point);
  }
  a.threads.push_back({.id = {1}, .tid = 42, .name = "app", .allocations = 540000,
                       .frees = 519000, .bytes_allocated = 68000000, .live_bytes = 22000000,
                       .temporary = 499000, .first_time_ns = 1'000'000,
                       .last_time_ns = 1'990'000'000});
  a.threads.push_back({.id = {2}, .tid = 43, .name = "worker \x1b[31m1", .allocations = 302,
                       .frees = 0, .bytes_allocated = 19928, .live_bytes = 19928,
                       .first_time_ns = 500'000'000, .last_time_ns = 700'000'000});
  a.mappings.push_back({.kind = MappingSite::Kind::kHeapGrowth, .stack = cache, .calls = 160,
                        .bytes = 22 << 20, .live_bytes = 22 << 20});
  a.mappings.push_back({.kind = MappingSite::Kind::kMmap, .stack = file,
                        .file = "/work/data/index.bin", .calls = 1, .bytes = 4 << 20,
                        .live_bytes = 4 << 20});
  a.memory_map = {.known = true, .heap_bytes = 22 << 20, .heap_at_start_bytes = 135168,
                  .heap_growth_seen_bytes = (22 << 20) - 135168, .anonymous_bytes = 9 << 20,
                  .anonymous_at_start_bytes = 1 << 20, .thread_stack_bytes = 8 << 20,
                  .unexplained_bytes = 12288};
  a.sizes.allocations[6] = 500000;
  a.sizes.bytes[6] = 24000000;
  a.sizes.allocations[7] = 300;
  a.sizes.bytes[7] = a.sizes.live_bytes[7] = 19200;
  a.sizes.allocations[9] = 2;
  a.sizes.bytes[9] = a.sizes.live_bytes[9] = 728;
  a.sizes.allocations[11] = 40000;
  a.sizes.bytes[11] = 44000000;
  a.sizes.live_bytes[11] = 22000000;
}

void ExpectGolden(const std::string& text, const std::string& name) {
  const std::string path = MEMTRACE_SOURCE_DIR "/tests/report/render/golden/" + name;
  if (std::getenv("MEMTRACE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

TEST(TextReportTest, IsReadableAtEightyColumnsInAscii) {
  MadeUp trace;
  FillBusy(trace);
  const std::string text = RenderText(trace.View(), Options(80, false));
  ExpectFits(text, 80);
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
  ExpectGolden(text, "render_busy_80.txt");
}

TEST(TextReportTest, IsReadableAtTwoHundredColumns) {
  MadeUp trace;
  FillBusy(trace);
  const std::string text = RenderText(trace.View(), Options(200, true));
  ExpectFits(text, 200);
  ExpectGolden(text, "render_busy_200.txt");
}

TEST(TextReportTest, ANameInASentenceTakesThreeLinesAtMost) {
  std::string function = "Deep<";
  for (int i = 0; i < 200; ++i) absl::StrAppend(&function, "std::allocator<int", i, ">, ");
  absl::StrAppend(&function, "int>::operator()(int)");
  TextOptions options;
  options.style.width = 80;
  const std::string name = NameInSentence(function, "/work/src/deep.cc:7", options);
  EXPECT_LE(words::DisplayWidth(name), 3 * 67u);
  EXPECT_TRUE(absl::EndsWith(name, " deep.cc:7")) << name;
  EXPECT_EQ(NameInSentence("f(int)", "/work/src/deep.cc:7", options), "f(int) /work/src/deep.cc:7");
  options.full = true;
  EXPECT_EQ(NameInSentence(function, "", options), function);
}

// Where a build was says little, and a line without its file nothing.
TEST(TextReportTest, ACallerInASentenceIsShownFromWhereTheProgramRanOrByTwoParts) {
  MadeUp trace;
  const StackId below = trace.Stack({{"Load()", "/work/src/load.c", 12}});
  const StackId elsewhere = trace.Stack({{"Leak()", "/builds/of/old/ex/leaks.c", 30}});
  for (const StackId stack : {below, elsewhere}) trace.AddSite(stack, 1, 8, 1);
  const auto view = trace.View();
  TextOptions options = Options(80, false);
  EXPECT_EQ(CallerInSentence(view, below, options), "Load() src/load.c:12");
  EXPECT_EQ(CallerInSentence(view, elsewhere, options), "Leak() ex/leaks.c:30");
  EXPECT_EQ(CallerWithin(view, elsewhere, 17, options), "Leak() leaks.c:30");
  EXPECT_EQ(CallerWithin(view, elsewhere, 16, options), "Leak() ...s.c:30");
  EXPECT_EQ(CallerWithin(view, elsewhere, 0, options), "");
  EXPECT_EQ(CallerWithin(view, {}, 7, options), "[no ...");
  options.full = true;
  EXPECT_EQ(CallerWithin(view, below, 10, options), "Load() src/load.c:12");
  EXPECT_EQ(CallerWithin(view, elsewhere, 10, options), "Leak() /builds/of/old/ex/leaks.c:30");
}

TEST(TextReportTest, AShortFunctionLeavesItsRoomToThePlace) {
  const TextOptions options = Options(80, false);
  EXPECT_EQ(NameWithin("make_node", "src/a_rather_long_source_name.c:2", 23, options),
            "make_node ...e_name.c:2");
  EXPECT_EQ(NameWithin("a::Long::scope_of_a_method(int)", "src/method.cc:127", 40, options),
            "a::Long::scope_of_a_method method.cc:127");
}

TEST(TextReportTest, FullShowsEveryFrame) {
  MadeUp trace;
  FillBusy(trace);
  TextOptions options = Options(100, true);
  options.full = true;
  options.sections = {TextSection::kLeaks};
  const std::string text = RenderText(trace.View(), options);
  EXPECT_THAT(text, HasSubstr("walk.c:129"));
  EXPECT_THAT(text, HasSubstr("operator new[](unsigned long)"));
  EXPECT_THAT(text, HasSubstr("_start"));
  EXPECT_THAT(text, HasSubstr("[inlined]"));
  EXPECT_THAT(text, Not(HasSubstr("--full")));
  ExpectGolden(text, "render_busy_full_leaks.txt");
}

TEST(TextReportTest, AnEmptyTraceSaysSoShortly) {
  MadeUp trace;
  const std::string text = RenderText(trace.View(), Options(80, false));
  ExpectFits(text, 80);
  EXPECT_THAT(text, HasSubstr("UNFREED BLOCKS  none: no allocation was recorded"));
  ExpectGolden(text, "render_empty_80.txt");
}

std::string UnfreedLine(const Analysis& analysis, MadeUp& trace) {
  trace.analysis = analysis;
  TextOptions options = Options(100, false);
  options.sections = {TextSection::kSummary};
  for (const absl::string_view line :
       absl::StrSplit(RenderText(trace.View(), options), '\n')) {
    if (absl::StartsWith(line, "  Unfreed")) return std::string(line.substr(13));
  }
  return "";
}

// No leak and no knowledge are two things.
TEST(TextReportTest, SaysThatEverythingWasFreedOnlyWhereEverythingWasRecorded) {
  MadeUp trace;
  Analysis nothing;
  EXPECT_EQ(UnfreedLine(nothing, trace), "nothing: nothing was allocated");
  Analysis own_malloc;
  own_malloc.coverage.notes.push_back({"the program has a malloc of its own"});
  EXPECT_EQ(UnfreedLine(own_malloc, trace),
            "not known: no allocation was recorded, see Coverage");
  Analysis freed;
  freed.totals.allocations = freed.totals.frees = 3;
  EXPECT_EQ(UnfreedLine(freed, trace), "nothing: every block was freed");
  const std::string not_all = "nothing of what was recorded, which is not all: see Coverage";
  Analysis lossy = freed;
  lossy.coverage.dropped_events = 1;
  lossy.coverage.events_missing = true;
  EXPECT_EQ(UnfreedLine(lossy, trace), not_all);
  Analysis cut = freed;
  cut.coverage.truncated = true;
  EXPECT_EQ(UnfreedLine(cut, trace), not_all);
  Analysis damaged = freed;
  damaged.coverage.lost_blocks = 1;
  damaged.coverage.events_missing = true;
  EXPECT_EQ(UnfreedLine(damaged, trace), not_all);
  own_malloc.totals = freed.totals;
  EXPECT_EQ(UnfreedLine(own_malloc, trace), not_all);
  Analysis stopped = freed;
  stopped.coverage.stops = 1;
  EXPECT_EQ(UnfreedLine(stopped, trace), "nothing: every block was freed");
  stopped.coverage.stopped_allocations = 1000;
  EXPECT_EQ(UnfreedLine(stopped, trace), not_all);
}

TEST(TextReportTest, SaysBytesInBlocksAndWhatWasCalled) {
  MadeUp trace;
  trace.AddSite(trace.Stack({{"f", "leak.c", 7}, {"main", "leak.c", 20}}), 2, 100, 2);
  trace.AddSite(trace.Stack({{"f", "leak.c", 8}, {"main", "leak.c", 20}}), 1, 256, 1).function =
      format::AllocFunction::kCalloc;
  const std::string text = RenderText(trace.View(), Options(80, false));
  EXPECT_THAT(text, HasSubstr("1  256 bytes in 1 block, calloc"));
  EXPECT_THAT(text, HasSubstr("2  200 bytes in 2 blocks, malloc"));
  EXPECT_THAT(text, HasSubstr("f  leak.c:7\n"));
}

TEST(TextReportTest, NoLossIsSilent) {
  MadeUp trace;
  Coverage& coverage = trace.analysis.coverage;
  coverage.dropped_events = 11;
  coverage.recovered_events = 12;
  coverage.unordered_events = 13;
  coverage.marked_stacks = 14;
  coverage.unknown_frees = 15;
  coverage.inherited_frees = 16;
  coverage.lost_blocks = 19;
  coverage.truncated = true;
  coverage.damage = "block at byte 4096: checksum differs";
  coverage.cross_checked = 1000;
  coverage.cross_check_differences = 17;
  coverage.notes.push_back({"a note of the library"});
  trace.analysis.totals.allocations = 100;
  const std::string text = RenderText(trace.View(), Options(200, false));
  for (const char* said :
       {"11 events lost", "12 events recovered", "13 events could not be ordered", "14 allocations",
        "15 frees", "16 frees", "17 stacks differed", "block at byte 4096",
        "a note of the library"}) {
    EXPECT_THAT(text, HasSubstr(said));
  }
  EXPECT_THAT(text, Not(HasSubstr("none lost")));
}

TEST(TextReportTest, HostileNamesDoNotReachTheTerminal) {
  MadeUp trace;
  const std::string hostile = "x\x1b]0;owned\x07\r\n\t\x9b\xff y";
  const StackId stack = trace.Stack({{hostile, hostile, 3}, {"", "", 0, kPlugin}});
  trace.AddSite(stack, 1, 10, 1).temporary = 1;
  Analysis& a = trace.analysis;
  a.totals.peak_live_bytes = 10;
  a.timeline.push_back({.time_ns = 2'000'000'000, .live_bytes = 10, .max_live_bytes = 10});
  a.file = a.process.executable = a.process.host = a.process.working_directory = hostile;
  a.process.command = {hostile, "'"};
  a.coverage.notes.push_back({hostile});
  a.coverage.truncated = true;
  a.coverage.damage = hostile;
  a.modules[2].path = hostile;
  a.threads.push_back({.tid = 1, .name = hostile});
  a.mappings.push_back({.stack = stack, .file = hostile});
  trace.plugin_state = symbolizer::ModuleState::kUnreadable;
  for (const bool full : {false, true}) {
    for (const bool utf8 : {false, true}) {
      TextOptions options = Options(80, utf8);
      options.full = full;
      for (const char c : RenderText(trace.View("x"), options)) {
        EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
        EXPECT_NE(c, 0x7f);
      }
    }
  }
}

TEST(TextReportTest, ALongCommandTakesFourLines) {
  MadeUp trace;
  std::string words;
  for (int i = 0; i < 3000; ++i) {
    trace.analysis.process.command.push_back(absl::StrCat("word", i));
    absl::StrAppend(&words, i == 0 ? "" : " ", "word", i);
  }
  TextOptions options = Options(80, true);
  const std::string text = RenderText(trace.View(), options);
  const size_t begin = text.find("  Program"), end = text.find("  Ended");
  ASSERT_LT(begin, end);
  const std::string told = text.substr(begin, end - begin);
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 4) << told;
  EXPECT_TRUE(absl::EndsWith(told, "\u2026\n")) << told;
  options.full = true;
  EXPECT_THAT(RenderText(trace.View(), options), HasSubstr(words));
}

TEST(TextReportTest, EveryWidthIsKept) {
  MadeUp trace;
  FillBusy(trace);
  const StackId start = trace.Stack({{"main", "/work/src/main.cc", 30}});
  trace.AddSite(start, 1, 64, 0).growth.verdict = Growth::Verdict::kBurst;
  trace.AddSite(start, 1, 64, 0).growth.verdict = Growth::Verdict::kHeld;
  const ReportView view = trace.View();
  for (size_t width = kMinWidth; width <= kMaxWidth; ++width) {
    const std::string text = RenderText(view, Options(width, width % 2 == 0));
    ExpectFits(text, width);
  }
}

TEST(TextReportTest, AnArrowInANameClosesNoBracket) {
  const auto shown = [](const char* function, size_t width) {
    const Frame frame = {.function = function, .file = "/src/m.rs", .line = 2};
    return FrameText("/src", frame, width, {}, Ink::kPlain);
  };
  EXPECT_EQ(shown("m::cache_it::<fn() -> std::path::PathBuf>", 40), "m::cache_it::<..>  m.rs:2");
  EXPECT_EQ(shown("decltype ((parm#1)->create(parm#2)) app::make<app::Factory>(app::Factory*, int)", 32),
            "app::make<app::Factory>  m.rs:2");
  EXPECT_EQ(shown("std::map<int, std::less<int> >::operator->(std::map<int> const&)", 40),
            "std::map<..>::operator->  m.rs:2");
}

TEST(TextReportTest, AConversionKeepsItsTypeWithItsScopes) {
  const auto shown = [](const char* function, size_t width) {
    const Frame frame = {.function = function, .file = "/src/m.cc", .line = 2};
    return FrameText("/src", frame, width, {}, Ink::kPlain);
  };
  EXPECT_EQ(shown("company::RowOfValues::operator std::basic_string<char>() const", 42),
            "operator std::basic_string  m.cc:2");
  EXPECT_EQ(shown("company::RowOfValues::operator int (*)(company::Key)() const", 64),
            "company::RowOfValues::operator int (*)(company::Key)  m.cc:2");
  EXPECT_EQ(shown("company::RowOfValues::operator int (*)(company::Key)() const", 40),
            "operator int (*)(company::Key)  m.cc:2");
}

// A "::" in the parameters of the function that a lambda is in is none of its scopes.
TEST(TextReportTest, ANameIsNotCutWithinAListOfParameters) {
  const Frame frame = {
      .function =
          "company_name_services::RequestHandlerOfTheServer::handle_request(std::"
          "basic_string<char> const&) const::{lambda(int)#1}::operator()(int) const",
      .file = "/src/lam.cc",
      .line = 6};
  const auto shown = [&](size_t width) { return FrameText("/src", frame, width, {}, Ink::kPlain); };
  EXPECT_EQ(shown(80),
            "RequestHandlerOfTheServer::handle_request(..)::{lambda#1}::operator()  lam.cc:6");
  EXPECT_EQ(shown(72), "handle_request(..)::{lambda#1}::operator()  lam.cc:6");
  EXPECT_EQ(shown(40), "{lambda#1}::operator()  lam.cc:6");
}

// What is first to go is the way to the package, and not the method.
TEST(TextReportTest, OfAMethodOfGoTheNameIsKept) {
  const auto shown = [](const char* function, size_t width) {
    const Frame frame = {.function = function, .file = "/src/m.go", .line = 2};
    return FrameText("/src", frame, width, {}, Ink::kPlain);
  };
  const char* const method = "github.com/company/app/net/http.(*Conn[go.shape.string_0]).Do.func1";
  EXPECT_EQ(shown(method, 60), "github.com/company/app/net/http.(*Conn[..]).Do.func1  m.go:2");
  EXPECT_EQ(shown(method, 58), "github.com/company/app/net/http.(*Conn).Do.func1  m.go:2");
  EXPECT_EQ(shown(method, 48), "company/app/net/http.(*Conn).Do.func1  m.go:2");
  EXPECT_EQ(shown(method, 32), "http.(*Conn).Do.func1  m.go:2");
  EXPECT_EQ(shown("lists_of_a_long_name_of_erlang:map_of_it/2", 40),
            "lists_of_a_long_name_of_erlan...  m.go:2");
  // A division is no path.
  EXPECT_THAT(shown("company_of_numbers::operator/(a::Number const&, a::Number const&)::{lambda()#1}"
                    "::operator()() const", 60),
              ::testing::StartsWith("operator/(..)::{lambda#1}::operator()"));
}

// Nothing at all reads as if the option had been misspelt.
TEST(TextReportTest, ASectionThatIsAskedForIsThere) {
  MadeUp trace;
  TextOptions options = Options(80, false);
  EXPECT_THAT(RenderText(trace.View(), options), Not(HasSubstr("INVALID FREES")));
  EXPECT_THAT(RenderText(trace.View(), options), Not(HasSubstr("PRESSURE")));
  options.sections = {TextSection::kInvalidFrees};
  const auto invalid_frees = [&] { return RenderText(trace.View(), options); };
  EXPECT_EQ(invalid_frees(), "INVALID FREES  none: no allocation was recorded\n");
  trace.analysis.totals.allocations = 1;
  EXPECT_EQ(invalid_frees(), "INVALID FREES  none\n");
  trace.analysis.invalid_frees.not_looked_for = 3;
  EXPECT_EQ(invalid_frees(),
            "INVALID FREES  none known: 3 frees of no live block were not looked up\n");
  trace.analysis.invalid_frees.of_unseen_blocks = 3;
  EXPECT_EQ(invalid_frees(), "INVALID FREES  none that is certain, see Coverage\n");
  trace.analysis.range.from_ns = 1;
  const std::string only = "  Only       blocks allocated from 1 ns to 2.00 s\n\n";
  EXPECT_EQ(invalid_frees(), only + "INVALID FREES  not known of a part of a run\n");
  trace.analysis.coverage.events_missing = true;
  EXPECT_EQ(invalid_frees(), only + "INVALID FREES  not known: events are missing, see Coverage\n");
  trace.analysis.process.sample_bytes = 4096;
  EXPECT_THAT(invalid_frees(), HasSubstr("not known: a sample"));
  options.sections = {TextSection::kPressure};
  const auto pressure = [&] { return RenderText(trace.View(), options); };
  EXPECT_THAT(pressure(), ::testing::StartsWith("PRESSURE  not known: nobody looked from outside,"));
  ExpectFits(pressure(), 80);
  trace.analysis.pressure.columns = {"swap_bytes"};
  EXPECT_EQ(pressure(), "PRESSURE  not known: no sample is of this part of the run\n");
}

TEST(TextReportTest, AShortRunShowsNoGrowth) {
  MadeUp trace;
  trace.AddSite(trace.Stack({{"main", "a.c", 1}}), 1, 1, 1);
  TextOptions options = Options(80, false);
  options.sections = {TextSection::kGrowing};
  EXPECT_THAT(RenderText(trace.View(), options), HasSubstr("GROWING SITES  none\n"));
  trace.analysis.process.duration_ns = 62'000'000;
  EXPECT_THAT(RenderText(trace.View(), options),
              HasSubstr("GROWING SITES  none: less than 0.1 s shows no growth\n"));
}

// Callers of an interpreter say little alone.
TEST(TextReportTest, GrowingSitesHaveTheFramesThatCalledTheCaller) {
  MadeUp trace;
  const auto grow = [&trace](const std::vector<Step>& steps, double bytes_per_s) {
    trace.AddSite(trace.Stack(steps), 1000, 100, 1000).growth = {
        .verdict = Growth::Verdict::kGrowing, .bytes_per_s = bytes_per_s,
        .bytes_per_s_low = bytes_per_s / 2, .bytes_per_allocation = 100, .confidence = 0.99};
  };
  grow({{"std::vector<int>::push_back(int&&)", "/usr/include/c++/12/bits/stl_vector.h", 5, kApp,
         true},
        {"push", "/work/vm.c", 1}, {"step", "/work/vm.c", 2}, {"loop", "/work/vm.c", 3},
        {"call", "/work/vm.c", 4}, {"a_rather_long_name_of_a_function_that_runs", "/work/vm.c", 5},
        {"main", "/work/vm.c", 6}, Libc("__libc_start_call_main"), Libc("_start")}, 9000);
  grow({{"exact", "/work/vm.c", 11}, {"one", "/work/vm.c", 12}, {"two", "/work/vm.c", 13},
        {"three", "/work/vm.c", 14}, {"main", "/work/vm.c", 15}}, 8000);
  for (uint32_t i = 0; i < 4; ++i) {
    grow({{absl::StrCat("site_", i), "/work/vm.c", 20 + i},
          {absl::StrCat("by_", i), "/work/vm.c", 30 + i}}, 7000.0 - i);
  }
  TextOptions options = Options(80, false);
  options.sections = {TextSection::kGrowing};
  const std::string text = RenderText(trace.View(), options);
  const std::string margin(40, ' ');
  for (const size_t width : {60, 80, 200}) {
    options.style.width = width;
    ExpectFits(RenderText(trace.View(), options), width);
  }
  EXPECT_THAT(text, HasSubstr(absl::StrCat("  push  vm.c:1\n", margin, "step  vm.c:2\n", margin,
                                           "loop  vm.c:3\n", margin, "call  vm.c:4\n", margin,
                                           "(2 more frames: --full)\n")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("  exact  vm.c:11\n", margin, "one  vm.c:12\n", margin,
                                           "two  vm.c:13\n", margin, "three  vm.c:14\n", margin,
                                           "main  vm.c:15\n  ")));
  EXPECT_THAT(text, HasSubstr("by_2  vm.c:32\n"));
  EXPECT_THAT(text, HasSubstr("site_3  vm.c:23\n"));
  EXPECT_THAT(text, Not(HasSubstr("by_3")));

  options.full = true;
  const std::string full = RenderText(trace.View(), options);
  for (const char* frame : {"push_back(int&&)", "_start  ", "by_3  vm.c:33\n",
                            "a_rather_long_name_of_a_function_that_runs  vm.c:5\n"}) {
    EXPECT_THAT(full, HasSubstr(frame));
  }
  EXPECT_THAT(full, Not(HasSubstr("--full")));
}

TEST(TextReportTest, GrowingSitesSayWhereAShortStackEnds) {
  MadeUp trace;
  const StackId stack = trace.Stack({{"grow", "/work/a.c", 1}, {"run", "/work/a.c", 2}});
  trace.EndWithMarker(stack, format::StackMarker::kTruncated);
  trace.AddSite(stack, 1000, 100, 1000).growth = {.verdict = Growth::Verdict::kGrowing,
                                                  .bytes_per_s = 10};
  TextOptions options = Options(80, false);
  options.sections = {TextSection::kGrowing};
  const std::string margin(40, ' ');
  EXPECT_THAT(RenderText(trace.View(), options),
              HasSubstr(absl::StrCat("grow  a.c:1\n", margin, "run  a.c:2\n", margin,
                                     "[truncated: deeper than the limit]\n")));
}

TEST(TextReportTest, SaysWhyThereIsNoMemoryMap) {
  MadeUp trace;
  Analysis& a = trace.analysis;
  TextOptions options = Options(80, false);
  options.sections = {TextSection::kMappings};
  const auto expect = [&](const char* why) {
    EXPECT_THAT(RenderText(trace.View(), options), HasSubstr(absl::StrCat("MEMORY MAP  ", why)));
  };
  constexpr char kNone[] = "not known: the trace has no map of the end\n";
  expect(kNone);
  a.range.to_ns = 1'000'000'000;
  expect("not known of a part of a run\n");
  a.coverage.live_until_ns = 1'000'000'000;
  expect(kNone);
  a.coverage.live_until_ns = 0;
  a.range = {};
  a.selection.sites = true;
  expect("not known of some of the blocks\n");
  a.selection.sites = false;
  a.some_threads = true;
  expect("not known of some of the blocks\n");
}

TEST(TextReportTest, AThreadWithoutEventsHasNoFirstAndLast) {
  MadeUp trace;
  trace.analysis.threads.push_back({.id = ThreadId{1}, .tid = 7, .name = "idle"});
  TextOptions options = Options(80, false);
  options.sections = {TextSection::kThreads};
  EXPECT_THAT(RenderText(trace.View(), options), HasSubstr("idle  no events"));
}

// An interpreter whose engine is a library of the system: the program itself says little.
TEST(TextReportTest, ALongStackOfTheSystemShowsItsInnermostFramesToo) {
  MadeUp trace;
  std::vector<Step> steps;
  for (int i = 1; i <= 20; ++i) {
    steps.push_back({absl::StrCat("engine_", i), "", 0, kLibc});
  }
  steps.push_back({"main", "script.c", 7});
  trace.AddSite(trace.Stack(steps), 1, 100, 1);
  TextOptions options = Options(80, false);
  options.sections = {TextSection::kLeaks};
  const std::string text = RenderText(trace.View(), options);
  EXPECT_THAT(text, HasSubstr("       engine_1  libc.so.6\n       engine_2  libc.so.6\n"
                              "       engine_3  libc.so.6\n"
                              "       (16 more frames of the system: --full)\n"
                              "       engine_20  libc.so.6\n       main  script.c:7\n"));
}

TEST(TextReportTest, SaysWhatTheProgramWrote) {
  MadeUp trace;
  trace.AddSite(trace.Stack({{"operator new(unsigned long)", "", 0, kLibc},
                             {"operator new[](unsigned long)", "", 0, kLibc},
                             {"std::vector<int>::push_back(int const&)", "v.h", 1, kApp, true},
                             {"f", "f.cc", 7}}), 1, 100, 1);
  EXPECT_THAT(RenderText(trace.View(), Options(80, false)),
              HasSubstr("100 bytes in 1 block, operator new[]"));
}

TEST(TextReportTest, SaysHowManyMoreThereAreAndWhatShowsThem) {
  MadeUp trace;
  for (uint32_t i = 1; i <= 15; ++i) {
    trace.AddSite(trace.Stack({{absl::StrCat("f", i), "f.c", i}}), 1, 100, 1);
  }
  TextOptions options = Options(100, false);
  options.top = 4;
  options.sections = {TextSection::kLeaks, TextSection::kSites};
  const std::string text = RenderText(trace.View(), options);
  EXPECT_THAT(text, HasSubstr("and 11 more call sites with 1.07 KiB in 11 blocks: --top 15 or "
                              "--full shows them"));
  EXPECT_THAT(text, HasSubstr("and 11 more callers: --top 15 or --full shows them"));
  options.full = true;
  EXPECT_THAT(RenderText(trace.View(), options), Not(HasSubstr("more call")));
}

TEST(TextReportTest, SectionsCanBeChosen) {
  MadeUp trace;
  FillBusy(trace);
  TextOptions options = Options(80, false);
  options.sections = {TextSection::kSizes};
  const std::string text = RenderText(trace.View(), options);
  EXPECT_EQ(text.find("SIZES"), 0u);
  EXPECT_THAT(text, Not(HasSubstr("UNFREED")));
}

TEST(TextReportTest, TheSortedColumnIsMarked) {
  MadeUp trace;
  FillBusy(trace);
  TextOptions options = Options(120, false);
  options.sections = {TextSection::kSites};
  for (const absl::string_view name : SortColumnNames()) {
    options.sort = *ParseSortColumn(name);
    const std::string header(name == "peak" ? "at peakv" : absl::StrCat(name, "v"));
    EXPECT_THAT(RenderText(trace.View(), options), HasSubstr(header));
  }
}

TEST(TextReportTest, ColoursWrapTextAndNothingElse) {
  MadeUp trace;
  FillBusy(trace);
  TextOptions options = Options(80, false);
  const std::string plain = RenderText(trace.View(), options);
  options.style.color = true;
  std::string coloured = RenderText(trace.View(), options);
  EXPECT_NE(plain, coloured);
  size_t begin;
  while ((begin = coloured.find('\x1b')) != std::string::npos) {
    coloured.erase(begin, coloured.find('m', begin) - begin + 1);
  }
  EXPECT_EQ(plain, coloured);
}

TEST(TextReportTest, ThePeakIsMarkedAboveItsColumn) {
  MadeUp trace;
  FillBusy(trace);
  TextOptions options = Options(80, false);
  options.sections = {TextSection::kGrowth};
  const std::vector<std::string> lines = absl::StrSplit(RenderText(trace.View(), options), '\n');
  const size_t arrow = lines[1].find('v');
  ASSERT_NE(arrow, std::string::npos);
  EXPECT_EQ(lines[2][arrow], '#') << "the column below the arrow is full";
}

}  // namespace
}  // namespace memtrace::report::render
