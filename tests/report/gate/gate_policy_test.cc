// What the words of `memtrace check` mean.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "report/gate/policy.h"
#include "report/leak/leak_kinds.h"

namespace memtrace::report::gate {
namespace {

using ::testing::HasSubstr;

TEST(GateKindsTest, AllIsWhatAScanFinds) {
  EXPECT_EQ(*ParseKinds("all"), *ParseKinds("definite,indirect,possible,reachable"));
  EXPECT_FALSE(ParseKinds("all")->Has(LeakKind::kUnfreed));
  EXPECT_TRUE(ParseKinds("none")->empty());
  EXPECT_EQ(KindNames(*ParseKinds("possible, definite")), "definite, possible");
}

TEST(GateKindsTest, RefusesAKindThatThereIsNot) {
  const auto kinds = ParseKinds("definite,lost");
  ASSERT_FALSE(kinds.ok());
  EXPECT_THAT(std::string(kinds.status().message()), HasSubstr("\"lost\" is no kind"));
  EXPECT_FALSE(ParseKinds("").ok());
  for (const char* list : {"all,none", "definite, all", "none,possible"}) {
    EXPECT_EQ(ParseKinds(list).status().message(),
              absl::StrCat("\"", list, "\": all and none stand alone, without other kinds"));
  }
}

TEST(GatePolicyTest, ALimitMayBeOfOneProgram) {
  const auto all = ParseLimit("--max-peak", "64M", false);
  EXPECT_EQ(all->program, "");
  EXPECT_EQ(all->most, 64u << 20);
  const auto one = ParseLimit("--max-peak", "a=b=1K", false);
  EXPECT_EQ(one->program, "a=b");
  EXPECT_EQ(one->most, 1024u);
  EXPECT_EQ(ParseLimit("--max-allocations", "5k", true)->most, 5000u);
  const auto wrong = ParseLimit("--max-peak", "=1K", false);
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("--max-peak: no program"));
  EXPECT_FALSE(ParseLimit("--max-allocations", "5KiB", true).ok());
}

TEST(GatePolicyTest, GrowthIsBetweenTwoPhases) {
  const auto growth = ParseGrowth("warm up..done=64K");
  ASSERT_TRUE(growth.ok()) << growth.status();
  EXPECT_EQ(growth->from, "warm up");
  EXPECT_EQ(growth->to, "done");
  EXPECT_EQ(growth->most, 64u << 10);
  const auto of_one = ParseGrowth("server=warm..done=1M");
  ASSERT_TRUE(of_one.ok()) << of_one.status();
  EXPECT_EQ(of_one->program, "server");
  EXPECT_EQ(of_one->from, "warm");
  EXPECT_EQ(of_one->to, "done");
  for (const char* wrong : {"a..b", "..b=1", "=a..b=1", "s=..b=1", "a..=1", "a.b=1", "a..b=x"}) {
    EXPECT_FALSE(ParseGrowth(wrong).ok()) << wrong;
  }
}

TEST(GatePolicyTest, ProgramsAreNamesWithWildcards) {
  GatePolicy policy;
  EXPECT_TRUE(policy.Judges("sh")) << "all";
  policy.programs = *ParsePrograms("app,test_*,r?n");
  EXPECT_EQ(policy.programs.size(), 3u);
  for (const char* name : {"app", "test_", "test_parser", "run"}) EXPECT_TRUE(policy.Judges(name)) << name;
  for (const char* name : {"", "apple", "my_test_a", "rn", "sh"}) EXPECT_FALSE(policy.Judges(name)) << name;
  for (const char* wrong : {"", "app,", ",app", "a,,b"}) {
    EXPECT_THAT(std::string(ParsePrograms(wrong).status().message()), HasSubstr("has an empty name")) << wrong;
  }
  EXPECT_THAT(std::string(ParsePrograms("build/app").status().message()), HasSubstr("by their file names"));
}

TEST(GatePolicyTest, ToleranceIsOfBytesOrAShare) {
  const Tolerance none = *ParseTolerance("0");
  EXPECT_TRUE(none.Allows(100, 100));
  EXPECT_TRUE(none.Allows(100, 99));
  EXPECT_FALSE(none.Allows(100, 101));
  const Tolerance share = *ParseTolerance("10%");
  EXPECT_TRUE(share.Allows(100, 110));
  EXPECT_FALSE(share.Allows(100, 111));
  const Tolerance bytes = *ParseTolerance("1K");
  EXPECT_TRUE(bytes.Allows(0, 1024));
  EXPECT_FALSE(bytes.Allows(0, 1025));
  EXPECT_FALSE(ParseTolerance("ten%").ok());
  const auto wrong = ParseTolerance("abc");
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("is not a size such as 4096"));
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr(", nor a share such as 10%"));
}

}  // namespace
}  // namespace memtrace::report::gate
