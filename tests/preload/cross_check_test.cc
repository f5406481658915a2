// The rule by which two unwinders' stacks are compared.

#include "preload/cross_check.h"

#include <gtest/gtest.h>

#include <vector>

namespace memtrace {
namespace {

using format::CrossCheckEnd;
using format::CrossCheckResult;
using format::StackMarker;

struct Theirs {
  std::vector<OracleFrame> frames;
  CrossCheckEnd end = CrossCheckEnd::kFirstFrame;
};

Theirs Frames(std::initializer_list<uintptr_t> pcs,
              CrossCheckEnd end = CrossCheckEnd::kFirstFrame) {
  Theirs theirs{{}, end};
  for (const uintptr_t pc : pcs) theirs.frames.push_back({.pc = pc});
  return theirs;
}

CrossCheckResult Compare(std::vector<uint64_t> keys, StackMarker marker, Theirs theirs,
                         size_t* first_different = nullptr) {
  const OracleStack oracle = {.frames = theirs.frames.data(),
                              .capacity = theirs.frames.size(),
                              .count = theirs.frames.size(),
                              .end = theirs.end};
  size_t at;
  const CrossCheckResult result = CompareStacks(keys.data(), keys.size(), marker, oracle, &at);
  if (first_different != nullptr) *first_different = at;
  return result;
}

TEST(CompareStacksTest, TheSameFramesAreTheSame) {
  EXPECT_EQ(Compare({1, 2, 3}, StackMarker::kNone, Frames({1, 2, 3})), CrossCheckResult::kSame);
  EXPECT_EQ(Compare({1, 2 | uint64_t{5} << 48}, StackMarker::kNone, Frames({1, 2})),
            CrossCheckResult::kSame)
      << "libunwind knows no instances";
}

TEST(CompareStacksTest, AnotherFrameAndAnotherNumberOfFramesAreDifferences) {
  size_t at;
  EXPECT_EQ(Compare({1, 2, 3}, StackMarker::kNone, Frames({1, 9, 3}), &at),
            CrossCheckResult::kDifferent);
  EXPECT_EQ(at, 1u);
  EXPECT_EQ(Compare({1, 2}, StackMarker::kNone, Frames({1, 2, 3}), &at),
            CrossCheckResult::kDifferent);
  EXPECT_EQ(at, 2u);
  EXPECT_EQ(Compare({1, 2, 3}, StackMarker::kNone, Frames({1, 2}), &at),
            CrossCheckResult::kDifferent);
  EXPECT_EQ(at, 2u);
  EXPECT_EQ(Compare({1, 9}, StackMarker::kNoUnwindInfo, Frames({1, 2, 3})),
            CrossCheckResult::kDifferent)
      << "a marker excuses no wrong frame";
}

TEST(CompareStacksTest, SignalsAndContextsMoveThePcByOne) {
  Theirs theirs = Frames({1, 20, 30});
  theirs.frames[1].trampoline = theirs.frames[2].interrupted = true;
  EXPECT_EQ(Compare({1, 21, 31}, StackMarker::kNone, theirs), CrossCheckResult::kSame);
  EXPECT_EQ(Compare({1, 21, 30}, StackMarker::kNone, theirs), CrossCheckResult::kDifferent);
  EXPECT_EQ(Compare({1, 3}, StackMarker::kContextEnd, Frames({1, 2, 77})),
            CrossCheckResult::kSame)
      << "libunwind goes on above the first frame of a context";
}

TEST(CompareStacksTest, AMarkedStackMayEndBeforeLibunwinds) {
  EXPECT_EQ(Compare({1, 2}, StackMarker::kNoUnwindInfo, Frames({1, 2})), CrossCheckResult::kSame);
  EXPECT_EQ(Compare({1, 2}, StackMarker::kNoUnwindInfo, Frames({1, 2}, CrossCheckEnd::kGaveUp)),
            CrossCheckResult::kSame);
  EXPECT_EQ(Compare({1, 2}, StackMarker::kTruncated, Frames({1, 2, 3})), CrossCheckResult::kSame);
  EXPECT_EQ(Compare({1, 2}, StackMarker::kUnsupported, Frames({1, 2, 3})),
            CrossCheckResult::kWentOn);
  Theirs guessed = Frames({1, 2, 3});
  guessed.frames[2].guessed = true;
  EXPECT_EQ(Compare({1, 2}, StackMarker::kNoUnwindInfo, guessed), CrossCheckResult::kGuessedOn);
  EXPECT_EQ(Compare({1, 2}, StackMarker::kNone, guessed), CrossCheckResult::kDifferent);
}

TEST(CompareStacksTest, AnErrorOfLibunwindsIsNoDifferenceAndNoAgreement) {
  EXPECT_EQ(Compare({1, 2, 3}, StackMarker::kNone, Frames({1, 2}, CrossCheckEnd::kGaveUp)),
            CrossCheckResult::kGaveUp);
  EXPECT_EQ(Compare({1, 2}, StackMarker::kNone, Frames({1, 2}, CrossCheckEnd::kGaveUp)),
            CrossCheckResult::kGaveUp);
  EXPECT_EQ(Compare({1}, StackMarker::kNone, Frames({}, CrossCheckEnd::kSiteMissed)),
            CrossCheckResult::kNotUnwound);
}

}  // namespace
}  // namespace memtrace
