// Lines of a baseline that hold for nothing seen here: fixed, suppressed now, or of a program that
// did not run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "report/gate/baseline.h"
#include "report/gate/formats.h"
#include "report/gate/judge.h"
#include "tests/report/gate/gate_made_up.h"

namespace memtrace::report::gate {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// A baseline of two leaks of app.
class EntriesTest : public ::testing::Test {
 protected:
  EntriesTest() : app_(gate_.AddProcess("app")) {
    gate_.AddLeak(app_, LeakKind::kDefinite, gate_.Stack("Wide"), 40, 1);
    gate_.AddLeak(app_, LeakKind::kDefinite, gate_.Stack("Other"), 10, 1);
    gate_.AcceptAll();
  }
  void Suppress(const std::string& text) {
    ASSERT_TRUE(gate_.suppressions.Add(text, "wide.supp").ok());
  }
  // What an update of the baseline makes of it now.
  std::string Updated(BaselineChanges* changes) {
    std::set<LostLeak> suppressed;
    for (const auto& [leak, by] : gate_.result.suppressed_leaks) suppressed.insert(leak);
    return gate_.baseline.Update(BaselineOf(gate_.result, *gate_.view), {"app"},
                                 gate_.policy.fail_on, {}, changes, suppressed);
  }

  MadeUpGate gate_;
  const uint32_t app_;
};

TEST_F(EntriesTest, WhatIsSuppressedNowIsNotFixed) {
  Suppress("leak:Wide\n");
  EXPECT_EQ(gate_.Judge().exit_code(), 0);
  EXPECT_THAT(gate_.result.fixed, IsEmpty());
  ASSERT_THAT(gate_.result.suppressed_entries, SizeIs(1));
  const BaselineEntry entry = gate_.result.suppressed_entries.front().entry;
  EXPECT_THAT(entry.caller, HasSubstr("Wide"));
  const std::string text = RenderGateText(gate_.Report());
  EXPECT_THAT(text, HasSubstr(absl::StrCat("\n\nsuppressed now by wide.supp:1: known:", entry.line,
                                           ": definite ", entry.fingerprint, " Wide  Wide.c\n")));
  EXPECT_THAT(text, Not(HasSubstr("These are gone")));
  const Json json = Json::parse(RenderGateJson(gate_.Report()));
  EXPECT_EQ(json.at("fixed"), Json::array());
  ASSERT_EQ(json.at("baseline_suppressed").size(), 1u);
  EXPECT_EQ(json.at("baseline_suppressed")[0].at("fingerprint"), entry.fingerprint);
  EXPECT_EQ(json.at("baseline_suppressed")[0].at("suppression").at("file"), "wide.supp");
  EXPECT_EQ(json.at("baseline_suppressed")[0].at("suppression").at("line"), 1);
}

TEST_F(EntriesTest, AnUpdateKeepsWhatIsSuppressedNowAndSaysSo) {
  std::string text = Updated(nullptr);
  const size_t wide = text.find("definite", text.find("bytes=40") - 30);
  text.insert(wide, "# BUG-7\n");
  gate_.baseline = *Baseline::Parse(text, "known");
  Suppress("leak:Wide\n");
  gate_.Judge();
  BaselineChanges changes;
  EXPECT_EQ(Updated(&changes), text);
  EXPECT_EQ(ChangesText(changes), "unchanged, 1 kept, suppressed now");
  // Of a leak that is gone nothing stays.
  gate_.input.losses.erase(gate_.input.losses.begin());
  gate_.Judge();
  EXPECT_THAT(Updated(&changes), Not(HasSubstr("BUG-7")));
  EXPECT_EQ(ChangesText(changes), "1 removed");
}

// Another block leads to it now.
TEST_F(EntriesTest, WhatIsLostWithAnotherOneMayBeSuppressedToo) {
  gate_.input.losses.front().kind = LeakKind::kIndirect;
  Suppress("leak:Wide\n");
  gate_.Judge();
  EXPECT_THAT(gate_.result.suppressed_entries, SizeIs(1));
  gate_.input.losses.front().kind = LeakKind::kReachable;
  gate_.Judge();
  EXPECT_THAT(gate_.result.suppressed_entries, IsEmpty());
  EXPECT_THAT(gate_.result.fixed, SizeIs(1)) << "that is another leak";
}

TEST_F(EntriesTest, ALeakOfWhichAPartIsSuppressedIsStillTold) {
  const StackId other = gate_.Stack("Wide", 20);
  gate_.AddLeak(app_, LeakKind::kDefinite, other, 10, 1);
  Suppress("{\n   one\n   Memcheck:Leak\n   fun:malloc\n   src:Wide.c:20\n}\n");
  EXPECT_EQ(gate_.Judge().exit_code(), 0);
  EXPECT_THAT(gate_.result.suppressed_entries, IsEmpty());
  EXPECT_THAT(gate_.result.fixed, IsEmpty());
}

TEST_F(EntriesTest, ProgramsThatWereNotSeenAreNamed) {
  gate_.Judge();
  EXPECT_THAT(RenderGateText(gate_.Report()), Not(HasSubstr("not seen to run")));
  const std::string line = " bytes=1 blocks=1 program=";
  std::string text;
  for (const BaselineEntry& entry : gate_.baseline.entries()) text += BaselineLine(entry) + "\n";
  gate_.baseline = *Baseline::Parse(
      absl::StrCat(text, "definite 00000000000000aa", line, "known_leak_test\n",
                   "definite 00000000000000ac", line, "*\n"),
      "known");
  EXPECT_EQ(gate_.Judge().exit_code(), 0) << "it is no failure";
  EXPECT_THAT(RenderGateText(gate_.Report()),
              HasSubstr("\n\n1 entry of a program that was not seen to run: known_leak_test\n"));
  const Json json = Json::parse(RenderGateJson(gate_.Report()));
  ASSERT_EQ(json.at("baseline_not_run").size(), 1u);
  EXPECT_EQ(json.at("baseline_not_run")[0].at("program"), "known_leak_test");
  EXPECT_EQ(json.at("baseline_not_run")[0].at("line"), 3);
}

TEST_F(EntriesTest, ManyProgramsThatWereNotSeenAreOneLine) {
  std::string text;
  for (const BaselineEntry& entry : gate_.baseline.entries()) text += BaselineLine(entry) + "\n";
  for (int i = 10; i < 30; ++i) {
    absl::StrAppend(&text, "possible 00000000000000", i, " bytes=1 blocks=1 program=test_", i,
                    "\n");
  }
  gate_.baseline = *Baseline::Parse(text, "known");
  gate_.Judge();
  GateReport report = gate_.Report();
  EXPECT_THAT(RenderGateText(report),
              HasSubstr("\n20 entries of programs that were not seen to run: test_10, test_11, and "
                        "18 more\n"));
  report.full = true;
  EXPECT_THAT(RenderGateText(report), HasSubstr("test_28, test_29\n"));
  // Who asks for some programs is not told of others.
  gate_.policy.programs = {"app", "test_1?"};
  gate_.Judge();
  EXPECT_THAT(gate_.result.not_run, SizeIs(10));
  // One that proves nothing ran all the same.
  gate_.input.processes[gate_.AddProcess("test_10")].no_evidence = "it was killed";
  gate_.Judge();
  EXPECT_THAT(gate_.result.not_run, SizeIs(9));
}

}  // namespace
}  // namespace memtrace::report::gate
