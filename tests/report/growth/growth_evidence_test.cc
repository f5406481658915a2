// What says of a site, before its history is made, that there is no evidence: it must be right of
// every history, for nobody looks at the rest then.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "report/growth/excursions.h"
#include "report/growth/retention.h"
#include "report/growth/rising_floor.h"
#include "report/growth/site_history.h"

namespace memtrace::report {
namespace {

constexpr uint64_t kIntervalNs = 1'000'000;
constexpr uint64_t kEndNs = 100 * kIntervalNs;

struct Lived {
  Site site;
  SiteHistory history;
};

// A site of `most` allocations at most, at times of its own; some blocks are freed, some stay.
Lived LiveAtRandom(std::mt19937_64& random, uint64_t most) {
  struct Event {
    uint64_t time, bytes;
    bool is_free;
  };
  const auto below = [&](uint64_t n) { return random() % n; };
  std::vector<Event> events;
  Lived lived;
  Site& site = lived.site;
  site.first_time_ns = kEndNs;
  // Regular ones are more like growth than chance would be.
  const bool regular = below(2) == 0, alike = below(2) == 0;
  const bool is_burst = !regular && below(2) == 0;
  const uint64_t allocations = 1 + below(most), step = kEndNs / (allocations + 1);
  const uint64_t usual = 1 + below(1024), stays = is_burst ? 0 : below(5);
  for (uint64_t i = 0; i < allocations; ++i) {
    const uint64_t time = regular    ? step * i + below(step / 8 + 1)
                          : is_burst ? kEndNs / 2 + below(kEndNs / 10)
                                     : below(kEndNs);
    const uint64_t bytes = alike                      ? usual
                           : regular && below(2) == 0 ? usual << i % 20
                                                      : 1 + below(4096);
    events.push_back({time, bytes, false});
    site.first_time_ns = std::min(site.first_time_ns, time);
    if (below(4) < stays) continue;
    events.push_back({time + below(is_burst ? kEndNs / 10 : kEndNs - time), bytes, true});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::pair(a.time, a.is_free) < std::pair(b.time, b.is_free);
  });
  for (const Event& event : events) {
    const auto interval = static_cast<uint32_t>(event.time / kIntervalNs);
    if (site.series.empty() || site.series.back().interval != interval) {
      site.series.push_back({.interval = interval, .low_bytes = site.live_bytes,
                             .high_bytes = site.live_bytes, .live_bytes = site.live_bytes});
    }
    if (event.is_free) {
      site.live_bytes -= event.bytes;
      ++site.frees;
    } else {
      site.live_bytes += event.bytes;
      site.bytes_allocated += event.bytes;
      ++site.allocations;
    }
    site.peak_bytes = std::max(site.peak_bytes, site.live_bytes);
    SeriesPoint& point = site.series.back();
    point.low_bytes = std::min(point.low_bytes, site.live_bytes);
    point.high_bytes = std::max(point.high_bytes, site.live_bytes);
    point.live_bytes = site.live_bytes;
    ++(event.is_free ? point.frees : point.allocations);
  }
  return lived;
}

void MakeHistory(Lived* lived) {
  SiteHistory& history = lived->history;
  history.site = &lived->site;
  history.end_ns = kEndNs;
  history.first_ns = lived->site.first_time_ns;
  history.interval_ns = kIntervalNs;
  history.levels = LevelsOf(lived->site, kIntervalNs, 0, kEndNs);
  history.first_level = static_cast<size_t>(history.first_ns / kIntervalNs);
  history.held = true;  // and so all that was allocated counts as what stays
  history.births = BirthsFromLevels(history);
}

// Of each question: how often there was evidence, and how often it could have been none.
struct Answers {
  int evidence = 0, none = 0;

  void Add(bool may, bool is) {
    EXPECT_TRUE(may || !is);
    evidence += is;
    none += !may;
  }
};

TEST(GrowthEvidenceTest, WhatCannotBeIsNot) {
  std::mt19937_64 random(7);
  Answers retained, rose, excursions;
  for (int round = 0; round < 60'000; ++round) {
    Lived lived = LiveAtRandom(random, round % 3 == 0 ? 4 : round % 3 == 1 ? 12 : 60);
    MakeHistory(&lived);
    const Site& site = lived.site;
    retained.Add(MayRetain(site), RetentionEvidence(lived.history).growing);
    rose.Add(MayRise(site), FloorEvidence(lived.history).growing ||
                                StepEvidence(lived.history).growing);
    excursions.Add(MayGoAndCome(site),
                   ExcursionVerdict(lived.history) != Growth::Verdict::kBounded);
    if (HasFailure()) FAIL() << "round " << round;
  }
  for (const Answers& answers : {retained, rose, excursions}) {
    EXPECT_GT(answers.evidence, 100);
    EXPECT_GT(answers.none, 100);
  }
}

}  // namespace
}  // namespace memtrace::report
