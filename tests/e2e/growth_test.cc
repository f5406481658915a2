// Growth verdicts of a real program: every function of tests/tracees/growth_phenomena.cc names
// what it is. docs/growth.md publishes how many are found.

#include <gtest/gtest.h>

#include <map>

#include "tests/e2e/harness.h"
#include "tests/report/growth/growth_figures.h"

namespace memtrace::e2e {
namespace {

using report::Growth;
using report::GrowthFigures;

Growth::Verdict VerdictOf(const std::string& name) {
  for (const Growth::Verdict verdict :
       {Growth::Verdict::kBounded, Growth::Verdict::kGrowing, Growth::Verdict::kBurst,
        Growth::Verdict::kSawtooth, Growth::Verdict::kHeld}) {
    if (report::VerdictName(verdict) == name) return verdict;
  }
  ADD_FAILURE() << "no verdict is called " << name;
  return Growth::Verdict::kBounded;
}

// "growing_LeaksEveryStep" of "(anonymous namespace)::growing_LeaksEveryStep(int)"; empty: none.
std::string Phenomenon(const Json& stack) {
  for (const Json& frame : stack) {
    std::string name = frame.value("function", "");
    for (const char* word : {"growing_", "bounded_", "burst_", "sawtooth_", "held_"}) {
      const size_t at = name.find(word);
      if (at != std::string::npos) return name.substr(at, name.find('(', at) - at);
    }
  }
  return "";
}

TEST(GrowthTest, ARealProgramIsJudgedAsWellAsTheDocumentSays) {
  TempDir traces;
  const Result run =
      RunCommand(Traced({{TraceePath("growth_phenomena"), "2000"}, {}, "", ""}, traces.path()));
  ASSERT_EQ(run.exit_status, 0) << run.err;
  const Json report = Report(TraceOf(traces.path(), "growth_phenomena"), {"--full"});
  // Of a function the site that allocated most: its other ones are of its container.
  std::map<std::string, const Json*> sites;
  for (const Json& site : report["sites"]) {
    const std::string name = Phenomenon(site["stack"]);
    if (name.empty()) continue;
    const Json*& most = sites[name];
    if (most == nullptr || site["bytes_allocated"] > (*most)["bytes_allocated"]) most = &site;
  }
  EXPECT_EQ(sites.size(), 20u);
  GrowthFigures figures;
  for (const auto& [name, site] : sites) {
    figures.Add(name, VerdictOf(name.substr(0, name.find('_'))), VerdictOf((*site)["growth"]));
  }
  std::printf("%s", figures.Table().c_str());
  figures.ExpectAsPublished("real");

  // A leak of 100 bytes every millisecond.
  const Json& rate = (*sites["growing_LeaksEveryStep"])["growth_rate"];
  ASSERT_FALSE(rate.is_null());
  EXPECT_NEAR(rate["bytes_per_s"].get<double>(), 100'000, 30'000);
  EXPECT_NEAR(rate["bytes_per_allocation"].get<double>(), 100, 30);
  EXPECT_TRUE((*sites["growing_ListFreedAtExit"])["held_until_exit"]);
  EXPECT_FALSE((*sites["growing_LeaksEveryStep"])["held_until_exit"]);
}

}  // namespace
}  // namespace memtrace::e2e
