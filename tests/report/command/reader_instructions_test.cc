// What an event costs in the reporter, in instructions: numbers that do not wobble with the
// machine, so that a line too much in the loop over billions of events is seen.
//
// Valgrind's callgrind counts whole reports of made-up traces (long_trace.h) of n and of 2 n
// events; the difference is what n events cost from the packed file to the figures: reading, zstd,
// columns, order, heap model. What does not grow with the events falls out.

#include <gtest/gtest.h>

#include <string>

#include "tests/artifact/callgrind.h"
#include "tests/report/long_trace.h"
#include "tests/report/scan_builder.h"
#include "tests/report/trace_builder.h"
#include "tests/temp_dir.h"

namespace memtrace::report {
namespace {

#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool kOptimized = true;
#else
constexpr bool kOptimized = false;
#endif

constexpr uint64_t kEvents = 200'000;
constexpr double kTolerance = 0.05;

struct Program {
  const char* name;
  uint32_t threads;
  double golden;  // instructions an event
};

class ReaderInstructionsTest : public testing::TestWithParam<Program> {
 protected:

  double Instructions(uint64_t events) const {
    const std::string trace = directory_ / std::to_string(events) + ".mtr";
    LongTraceOptions options;
    options.events = events;
    options.threads = GetParam().threads;
    options.live_blocks = 5000;
    options.sites = 300;
    LongTraceFacts facts;
    EXPECT_TRUE(WriteLongTrace(trace, options, &facts).ok());
    return InstructionsOf("", MEMTRACE_BUILD_DIR
                          "/bin/memtrace report --index off --jobs 1 --table summary " + trace);
  }

  TempDir directory_;
};

TEST_P(ReaderInstructionsTest, IsTheGoldenNumber) {
  if (!kCompilerOfGoldenNumbers || !kOptimized) {
    GTEST_SKIP() << "the golden numbers are of gcc 12 on x86-64, optimized";
  }
  const double an_event =
      (Instructions(2 * kEvents) - Instructions(kEvents)) / static_cast<double>(kEvents);
  EXPECT_NEAR(an_event, GetParam().golden, GetParam().golden * kTolerance)
      << "when the way of an event was changed on purpose, this is the new number";
}

// A program may ask for a memory scan in every turn of its loop. Each was looked for among the blocks of all.
TEST(ReaderInstructionsOfScansTest, DoNotGrowWithTheirNumber) {
  if (!kOptimized) GTEST_SKIP() << "the program is not as users get it";
  const TempDir directory;
  const auto instructions = [&](uint32_t scans) {
    TraceBuilder trace;
    trace.Thread(1, 4242, "main").At(1000).Malloc(0x10010, 100);
    for (uint32_t i = 1; i <= scans; ++i) {
      ScanBuilder(i, trace.TicksAt(2000 + i), format::ScanReason::kRequest).Failed("a reason").AddTo(&trace);
    }
    trace.End(0, 1'000'000);
    const std::string path = directory / std::to_string(scans) + ".mtr";
    EXPECT_TRUE(trace.WriteTo(path));
    return InstructionsOf("", MEMTRACE_BUILD_DIR
                          "/bin/memtrace report --index off --jobs 1 --table summary " + path);
  };
  const double none = instructions(1), some = instructions(2'000), twice = instructions(4'000);
  EXPECT_LT((twice - some) / (some - none), 1.2);
}

INSTANTIATE_TEST_SUITE_P(Programs, ReaderInstructionsTest,
                         testing::Values(Program{"OneThread", 1, 340},
                                         Program{"FourThreads", 4, 426}),
                         [](const auto& program) { return std::string(program.param.name); });

}  // namespace
}  // namespace memtrace::report
