// Which sites read alike is found once for the same trace and names; what was kept of others, or is
// damaged, is as if it were not there.

#include "report/index/grouping_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "report/render/view.h"
#include "tests/report/render/render_made_up.h"
#include "tests/temp_dir.h"

namespace memtrace::report::index {
namespace {

namespace fs = std::filesystem;
using render::Grouping;
using render::GroupSites;

class GroupingStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    summary_ = directory_ / "a.sum";
    for (uint32_t i = 0; i < 60; ++i) {
      // Stacks of several addresses that read alike, and of callers that do.
      const StackId stack = made_up_.Stack(
          {{"Leaf" + std::to_string(i % 7), "leaf.cc", 1 + i % 7}, {"Main", "main.cc", 1 + i % 2}});
      made_up_.AddSite(stack, 1 + i % 9, 10 * (1 + i % 4), i % 3);
    }
  }

  TempDir directory_;
  std::string summary_;
  MadeUp made_up_;
  const TraceIdentity identity_{7, 8, 9, 10};
};

TEST_F(GroupingStoreTest, WhatWasKeptIsRecalled) {
  const SiteSymbols& symbols = made_up_.symbols();
  const GroupingStore store(summary_, identity_, symbols.checksum());
  EXPECT_FALSE(store.Recall(made_up_.analysis).has_value());
  const Grouping grouping = GroupSites(made_up_.analysis, symbols);
  EXPECT_TRUE(grouping.IsOf(made_up_.analysis));
  store.Keep(grouping);
  const auto known = store.Recall(made_up_.analysis);
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->rows, grouping.rows);
  EXPECT_EQ(known->leaks, grouping.leaks);
  EXPECT_EQ(known->callers, grouping.callers);
}

TEST_F(GroupingStoreTest, OfOtherNamesOrAnotherTraceNothingIsKnown) {
  const uint64_t names = made_up_.symbols().checksum();
  GroupingStore(summary_, identity_, names).Keep(GroupSites(made_up_.analysis, made_up_.symbols()));
  EXPECT_FALSE(GroupingStore(summary_, identity_, names + 1).Recall(made_up_.analysis).has_value());
  TraceIdentity other = identity_;
  ++other.modified_ns;
  EXPECT_FALSE(GroupingStore(summary_, other, names).Recall(made_up_.analysis).has_value());
  made_up_.analysis.sites.pop_back();
  EXPECT_FALSE(GroupingStore(summary_, identity_, names).Recall(made_up_.analysis).has_value());
  EXPECT_FALSE(GroupingStore("", identity_, names).Recall(made_up_.analysis).has_value());
}

TEST_F(GroupingStoreTest, WhatIsDamagedIsNotThere) {
  const GroupingStore store(summary_, identity_, 1);
  store.Keep(GroupSites(made_up_.analysis, made_up_.symbols()));
  const fs::path file = directory_ / "a.grp";
  std::stringstream content;
  content << std::ifstream(file).rdbuf();
  const std::string good = content.str();
  std::mt19937_64 random(20261125);
  for (int i = 0; i < 40; ++i) {
    std::string bad = good;
    bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
    if (i % 8 == 7) bad.resize(random() % bad.size());
    std::ofstream(file, std::ios::trunc) << bad;
    EXPECT_FALSE(store.Recall(made_up_.analysis).has_value()) << i;
  }
}

// The checksum is right, and the content is nobody's.
TEST_F(GroupingStoreTest, WhatIsNoGroupingOfTheseSitesIsNotTaken) {
  const Grouping good = GroupSites(made_up_.analysis, made_up_.symbols());
  const auto taken = [&](const auto& change) {
    Grouping bad = good;
    change(bad);
    const GroupingStore store(summary_, identity_, 1);
    store.Keep(bad);
    return store.Recall(made_up_.analysis).has_value();
  };
  EXPECT_TRUE(taken([](Grouping&) {}));
  EXPECT_FALSE(taken([](Grouping& g) { g.rows[3].site = g.rows[4].site; }));
  EXPECT_FALSE(taken([](Grouping& g) { g.rows[3].site = 60; }));
  EXPECT_FALSE(taken([](Grouping& g) { g.rows[3].leak = g.rows[3].leak == 0 ? 1 : 0; }));
  EXPECT_FALSE(taken([](Grouping& g) { g.rows[3].caller = g.callers; }));
  EXPECT_FALSE(taken([](Grouping& g) { ++g.callers; }));
  EXPECT_FALSE(taken([](Grouping& g) { ++g.leaks; }));
  EXPECT_FALSE(taken([](Grouping& g) { g.rows.pop_back(); }));
}

// What a view of it shows is what a view shows that grouped the sites itself.
TEST_F(GroupingStoreTest, AViewIsTheSameEitherWay) {
  const SiteSymbols& symbols = made_up_.symbols();
  const auto own = render::ReportView::Create(made_up_.analysis, symbols, "");
  ASSERT_TRUE(own.ok());
  const render::ReportView given =
      render::ReportView::Create(made_up_.analysis, symbols, GroupSites(made_up_.analysis, symbols));
  EXPECT_EQ(given.sites(), own->sites());
  ASSERT_EQ(given.unfreed().size(), own->unfreed().size());
  for (size_t i = 0; i < given.unfreed().size(); ++i) {
    EXPECT_EQ(given.unfreed()[i].sites, own->unfreed()[i].sites);
    if (i == 0) continue;
    EXPECT_GE(given.unfreed()[i - 1].live_bytes, given.unfreed()[i].live_bytes);
  }
  std::vector<render::SiteGroup> callers = own->callers();
  SortGroups(*own, render::SortColumn::kTotal, &callers);
  ASSERT_EQ(given.callers().size(), callers.size());
  for (size_t i = 0; i < callers.size(); ++i) {
    EXPECT_EQ(given.callers()[i].sites, callers[i].sites);
  }
}

}  // namespace
}  // namespace memtrace::report::index
