// A known leak has grown when more is lost than the baseline allows, whatever hangs on what.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <nlohmann/json.hpp>

#include "report/gate/formats.h"
#include "report/gate/judge.h"
#include "tests/report/gate/gate_made_up.h"

namespace memtrace::report::gate {
namespace {

using ::testing::HasSubstr;

// A list that was forgotten: one block leads, the others hang on it.
class GrownTest : public ::testing::Test {
 protected:
  GrownTest() : stack_(gate_.Stack("Push")) { Lose(gate_.AddProcess("tree"), {32, 1}, {288, 9}); }

  void Lose(uint32_t process, LeakAmount direct, LeakAmount indirect) {
    gate_.AddLeak(process, LeakKind::kDefinite, stack_, direct.bytes, direct.blocks, indirect);
    gate_.AddLeak(process, LeakKind::kIndirect, stack_, indirect.bytes, indirect.blocks);
  }
  // What the first process loses now.
  void LoseNow(LeakAmount direct, LeakAmount indirect) {
    gate_.input.losses[0].direct = direct;
    gate_.input.losses[0].indirect = gate_.input.losses[1].direct = indirect;
  }
  int Judged() { return gate_.Judge().exit_code(); }

  MadeUpGate gate_;
  const StackId stack_;
};

TEST_F(GrownTest, AListThatBecameLongerHas) {
  gate_.AcceptAll();
  EXPECT_EQ(gate_.baseline.entries().front().lost.bytes, 320u);
  EXPECT_EQ(Judged(), 0);
  LoseNow({32, 1}, {3'199'968, 99'999});
  EXPECT_EQ(Judged(), 1);
  EXPECT_EQ(gate_.result.leaks.front().verdict, Verdict::kGrown);
  const std::string text = RenderGateText(gate_.Report());
  EXPECT_THAT(text, HasSubstr("  grown: in all 3,200,000 bytes in 100,000 blocks in one process, "
                              "the baseline allows 320 bytes in 10 blocks\n"));
  const auto leak = nlohmann::json::parse(RenderGateJson(gate_.Report())).at("leaks").at(0);
  EXPECT_EQ(leak.at("most_blocks"), 1);
  EXPECT_EQ(leak.at("allowed").at("blocks"), 1);
  EXPECT_EQ(leak.at("most_lost_bytes"), 3'200'000);
  EXPECT_EQ(leak.at("most_lost_blocks"), 100'000);
  EXPECT_EQ(leak.at("allowed_lost").at("bytes"), 320);
  // That is also what an update would make of it.
  gate_.AcceptAll();
  EXPECT_EQ(Judged(), 0);
}

TEST_F(GrownTest, OthersThatLeadAreNoMoreThatIsLost) {
  gate_.AcceptAll();
  LoseNow({320, 10}, {0, 0});
  EXPECT_EQ(Judged(), 0);
  LoseNow({64, 2}, {256, 8});
  EXPECT_EQ(Judged(), 0);
  LoseNow({64, 2}, {288, 9});
  EXPECT_EQ(Judged(), 1);
  EXPECT_THAT(RenderGateText(gate_.Report()),
              HasSubstr("grown: 64 bytes in 2 blocks in one process, the baseline allows 32 bytes"));
}

// A line without lost_bytes= was written where nothing hung on the leak.
TEST_F(GrownTest, WhatHangsOnALeakThatHadNothingHas) {
  LoseNow({320, 10}, {0, 0});
  gate_.AcceptAll();
  EXPECT_EQ(gate_.baseline.entries().front().lost.blocks, 0u);
  LoseNow({32, 1}, {288, 9});
  EXPECT_EQ(Judged(), 0) << "one of the ten leads to the others";
  LoseNow({32, 1}, {320, 10});
  EXPECT_EQ(Judged(), 1);
}

TEST_F(GrownTest, EachProcessMayLoseAsMuch) {
  gate_.AcceptAll();
  const uint32_t other = gate_.AddProcess("tree");
  Lose(other, {32, 1}, {288, 9});
  EXPECT_EQ(Judged(), 0);
  gate_.input.losses.back().direct = {320, 10};
  EXPECT_EQ(Judged(), 1);
}

// The one has most blocks, the other most bytes.
TEST_F(GrownTest, TheBaselineHasTheMostOfEachNumber) {
  LoseNow({20, 2}, {0, 0});
  Lose(gate_.AddProcess("tree"), {10, 1}, {1000, 1});
  gate_.AcceptAll();
  EXPECT_EQ(Judged(), 0);
}

TEST_F(GrownTest, AToleranceIsOfAllThatIsLost) {
  gate_.AcceptAll();
  LoseNow({32, 1}, {320, 10});
  gate_.policy.tolerance = {.bytes = 0, .percent = 10};
  EXPECT_EQ(Judged(), 0);
  LoseNow({32, 1}, {352, 11});
  EXPECT_EQ(Judged(), 1);
  gate_.policy.tolerance = {.bytes = 64, .percent = 0};
  EXPECT_EQ(Judged(), 0);
  LoseNow({32, 1}, {353, 11});
  EXPECT_EQ(Judged(), 1);
}

TEST_F(GrownTest, TheAmountThatTheToleranceDoesNotCoverIsSaidToHave) {
  LoseNow({100, 1}, {200, 9});
  gate_.AcceptAll();
  gate_.policy.tolerance = {.bytes = 0, .percent = 10};
  LoseNow({104, 1}, {936, 9});
  EXPECT_EQ(Judged(), 1);
  EXPECT_THAT(RenderGateText(gate_.Report()),
              HasSubstr("  grown: in all 1,040 bytes in 10 blocks in one process, the baseline "
                        "allows 300 bytes in 10 blocks\n"));
  LoseNow({111, 1}, {929, 9});
  EXPECT_EQ(Judged(), 1);
  EXPECT_THAT(RenderGateText(gate_.Report()),
              HasSubstr("  grown: 111 bytes in 1 block in one process, the baseline allows 100 "
                        "bytes in 1 block\n"));
}

// What is forgiven where it leads may hang on another block in the next run.
TEST_F(GrownTest, WhatIsSuppressedWhereItLeadsDoesNotCountWhereItHangs) {
  const StackId other = gate_.made_up.Stack({{"Push", "/work/src/Push.c", 20},
                                             {"main", "/work/src/main.c", 3},
                                             Libc("__libc_start_main")});
  gate_.made_up.AddSite(other, 1, 1, 0);
  gate_.AddLeak(0, LeakKind::kDefinite, other, 640, 20);
  ASSERT_TRUE(gate_.suppressions
                  .Add("{\n   known\n   Memcheck:Leak\n   match-leak-kinds: definite\n"
                       "   fun:malloc\n   src:Push.c:20\n}\n",
                       "s")
                  .ok());
  gate_.AcceptAll();
  EXPECT_EQ(gate_.baseline.entries().front().bytes, 32u) << "without what is suppressed";
  gate_.input.losses.back().kind = LeakKind::kIndirect;
  EXPECT_EQ(Judged(), 0);
}

// What hung on a suppressed leak may hang on a known one: then that counts by itself.
TEST_F(GrownTest, WhatHangsOnASuppressedLeakIsNotHeldAgainstAKnownOne) {
  gate_.AcceptAll();
  const StackId other = gate_.Stack("Lose");
  gate_.AddLeak(0, LeakKind::kDefinite, other, 64, 1);
  ASSERT_TRUE(gate_.suppressions.Add("{\n   known\n   Memcheck:Leak\n   fun:malloc\n   fun:Lose\n}\n",
                                     "s").ok());
  LoseNow({32, 1}, {320, 10});
  EXPECT_EQ(Judged(), 0);
  LoseNow({64, 2}, {320, 10});
  EXPECT_EQ(Judged(), 1);
}

TEST_F(GrownTest, OtherKindsAreOfWhatIsTheirsAlone) {
  gate_.policy.fail_on = LeakKindSet::Of(LeakKind::kDefinite).With(LeakKind::kIndirect);
  gate_.AcceptAll();
  EXPECT_EQ(Judged(), 0);
  const auto leaks = nlohmann::json::parse(RenderGateJson(gate_.Report())).at("leaks");
  for (const auto& leak : leaks) {
    EXPECT_EQ(leak.contains("allowed_lost"), leak.at("kind") == "definite");
  }
  LoseNow({32, 1}, {320, 10});
  EXPECT_EQ(Judged(), 1);
  EXPECT_EQ(gate_.result.gated, 2u);
}

}  // namespace
}  // namespace memtrace::report::gate
