#include <gtest/gtest.h>

#include "report/render/formats.h"
#include "tests/report/render/render_made_up.h"

namespace memtrace::report::render {
namespace {

std::string MtraceOf(const ReportView& view) {
  words::StringSink sink;
  RenderMtrace(view, sink);
  return sink.text();
}

TEST(MtraceTest, PrintsWhatTheScriptPrints) {
  MadeUp trace;
  const StackId leak = trace.Stack({{"leak", "/src/leak.c", 7}, {"main", "/src/leak.c", 20}});
  const StackId raw = trace.Stack({{"", "", 0}, {"main", "/src/leak.c", 21}});
  trace.AddSite(leak, 2, 100, 2);
  trace.AddSite(raw, 1, 0, 1);
  trace.analysis.live = {{.address = 0x55e0c9b2b740, .bytes = 100, .stack = leak},
                         {.address = 0x55e0c9b2b6d0, .bytes = 0x12345678, .stack = leak},
                         {.address = 0x7f0000000010, .bytes = 0, .stack = raw}};
  // Compared by hand with mtrace of glibc 2.36 (debian 12), printf "%#018x %#8x  at %s".
  EXPECT_EQ(MtraceOf(trace.View()),
            "\nMemory not freed:\n"
            "-----------------\n"
            "           Address     Size     Caller\n"
            "0x000055e0c9b2b6d0 0x12345678  at /src/leak.c:7\n"
            "0x000055e0c9b2b740     0x64  at /src/leak.c:7\n"
            "0x00007f0000000010        0  at app+0x1020\n");
}

TEST(MtraceTest, SaysThatThereIsNothing) {
  MadeUp trace;
  EXPECT_EQ(MtraceOf(trace.View()), "No memory leaks.\n");
}

TEST(MtraceTest, SaysNothingOfTheKindWhereNotAllWasRecorded) {
  MadeUp trace;
  Coverage& coverage = trace.analysis.coverage;
  coverage.stops = 1;
  coverage.stopped_ns = 5'000'000;
  EXPECT_EQ(MtraceOf(trace.View()), "No memory leaks.\n");
  coverage.stopped_allocations = 1;
  EXPECT_EQ(
      MtraceOf(trace.View()),
      "Not known whether there are leaks: recording stopped by the program 1 time for 5.00 ms: "
      "1 allocation then is in no figure.\n");
  coverage = {};
  coverage.recording_end_ns = 1'000'000;
  EXPECT_EQ(MtraceOf(trace.View()), "Not known whether there are leaks: not all was recorded.\n");
}

TEST(MtraceTest, ListsOnlyWhatMatches) {
  MadeUp trace;
  const StackId a = trace.Stack({{"alpha", "a.c", 1}});
  const StackId b = trace.Stack({{"beta", "b.c", 2}});
  trace.AddSite(a, 1, 8, 1);
  trace.AddSite(b, 1, 8, 1);
  trace.analysis.live = {{.address = 16, .bytes = 8, .stack = a},
                         {.address = 32, .bytes = 8, .stack = b}};
  const std::string text = MtraceOf(trace.View("beta"));
  EXPECT_EQ(text.substr(0, text.find('\n')), "Only sites that match /beta/: 1.");
  EXPECT_EQ(text.find("a.c:1"), std::string::npos);
  EXPECT_NE(text.find("b.c:2"), std::string::npos);
}

TEST(MtraceTest, NothingLeftOfWhatWasAskedForIsNoAllClear) {
  MadeUp trace;
  trace.AddSite(trace.Stack({{"alpha", "a.c", 1}}), 1, 8, 1);
  EXPECT_EQ(MtraceOf(trace.View("nosuch")),
            "Only sites that match /nosuch/: 0.\nNone of these was left unfreed.\n");
  trace.analysis.range.to_ns = 1'000'000'000;
  EXPECT_EQ(MtraceOf(trace.View()), "Only blocks allocated from 0 s to 1.00 s.\nNone of these was left unfreed.\n");
}

}  // namespace
}  // namespace memtrace::report::render
