// What a malloc and a free cost in the library, in instructions: numbers that do not
// wobble with the machine, so that a line too much on the event path is seen.
//
// Valgrind's callgrind counts a program that does something n and 2 n times, with and
// without the library; the difference of the differences is what the library adds to
// one time. Samples and stamps are taken by the clock, and the program is fifty times
// slower than by itself: hence the tolerance, and the least of several runs, of more where others are at work.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/artifact/callgrind.h"
#include "tests/temp_dir.h"

namespace memtrace {
namespace {

constexpr int kTimes = 20'000;
constexpr int kRuns = 3, kMostRuns = 12;
constexpr double kTolerance = 0.05;

struct Path {
  const char* mode;
  double golden;  // instructions that the library adds to one time
};

class InstructionCountTest : public testing::TestWithParam<Path> {
 protected:

  double Instructions(const std::string& mode, int times, bool traced) const {
    std::string before = "cd " + directory_.path() + " && rm -f *.mtr && ";
    if (traced) {
      before += "LD_PRELOAD=" MEMTRACE_BUILD_DIR "/lib/libmemtrace.so MEMTRACE_OUT=" + directory_.path() +
                "/%p.mtr MEMTRACE_LEAK_CHECK=off ";
    }
    return InstructionsOf(before, MEMTRACE_BUILD_DIR "/tests/tracees/counted_pairs " + mode + " " +
                                      std::to_string(times));
  }

  static bool IsNear(double added, double golden) { return std::abs(added - golden) <= golden * kTolerance; }

  double Added(const std::string& mode, double golden) const {
    const double plain =
        Instructions(mode, 2 * kTimes, false) - Instructions(mode, kTimes, false);
    // Each run for itself: what comes with the clock only adds to it, on a busy machine more than
    // the second half is worth.
    double once = 1e18, twice = 1e18, added = 0;
    for (int run = 0; run < kRuns || (run < kMostRuns && !IsNear(added, golden)); ++run) {
      once = std::min(once, Instructions(mode, kTimes, true));
      twice = std::min(twice, Instructions(mode, 2 * kTimes, true));
      added = (twice - once - plain) / kTimes;
    }
    return added;
  }

  TempDir directory_;
};

TEST_P(InstructionCountTest, IsTheGoldenNumber) {
  if (!kCompilerOfGoldenNumbers) GTEST_SKIP() << "the golden numbers are those of gcc 12 on x86-64";
  const double added = Added(GetParam().mode, GetParam().golden);
  EXPECT_NEAR(added, GetParam().golden, GetParam().golden * kTolerance)
      << "when the event path was changed on purpose, this is the new number";
}

INSTANTIATE_TEST_SUITE_P(
    Paths, InstructionCountTest,
    testing::Values(Path{"pair", 438}, Path{"apart", 447}, Path{"turns", 597},
                    Path{"fresh", 8876}),
    [](const auto& path) { return std::string(path.param.mode); });

}  // namespace
}  // namespace memtrace
