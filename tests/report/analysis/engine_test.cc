// The whole way of the events, from the bytes of a trace to the analysis, against models that are
// too slow and simple to be wrong: raw and packed, with any number of threads at work,
// whole and damaged. heap_model_test.cc and event_order_test.cc look at the parts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "report/trace/packer.h"
#include "tests/report/history.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"
#include "tests/report/truth_check.h"

namespace memtrace::report {
namespace {

constexpr unsigned kJobs[] = {2, 3, 8};

// Fewer rounds where each takes ten times as long.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kOneIn = 10;
#else
constexpr int kOneIn = 1;
#endif

// Blocks of at most `merge_bytes`, so that short histories have many.
std::string Packed(const std::string& raw, size_t merge_bytes) {
  const int fd = memfd_create("packed", MFD_CLOEXEC);
  const MemorySource source(raw);
  PackerOptions options;
  options.level = 1;
  options.merge_bytes = merge_bytes;
  Packer packer(&source, fd, "packed", options);
  EXPECT_TRUE(packer.Start().ok());
  EXPECT_TRUE(packer.Finish().ok());
  std::string bytes(packer.bytes_written(), '\0');
  EXPECT_EQ(pread(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  close(fd);
  return bytes;
}

// Everything that an analysis says of events. Two that are described by the same words are the
// same.
std::string Describe(const AnalyzedTrace& trace) {
  const Analysis& a = trace.analysis;
  std::ostringstream out;
  out.precision(17);
  const auto write = [&](const char* what, auto... numbers) {
    out << what;
    ((out << ' ' << numbers), ...);
    out << '\n';
  };
  write("process", a.process.duration_ns, static_cast<int>(a.process.end));
  write("totals", a.totals.allocations, a.totals.frees, a.totals.bytes_allocated,
        a.totals.live_bytes, a.totals.live_blocks, a.totals.peak_live_bytes,
        a.totals.peak_live_blocks, a.totals.peak_time_ns, a.totals.wasted_bytes,
        a.totals.temporary_allocations, a.totals.reallocations, a.totals.failed_allocations,
        a.totals.earlier_frees);
  const Coverage& c = a.coverage;
  write("coverage", c.events, c.dropped_events, c.recovered_events, c.unordered_events,
        c.marked_stacks, c.unknown_frees, c.unseen_frees, c.lost_blocks, c.truncated,
        c.interrupted, c.damage);
  for (const CoverageNote& note : c.notes) write("note", note.text);
  for (const Site& s : a.sites) {
    write("site", s.stack.value, static_cast<int>(s.function), s.allocations, s.frees,
          s.bytes_allocated, s.live_bytes, s.live_blocks, s.peak_bytes, s.bytes_at_peak,
          s.blocks_at_peak, s.blocks_at_own_peak, s.wasted_bytes, s.live_wasted_bytes,
          s.temporary, s.freed_by_other_thread, s.largest_bytes, s.freed_lifetime_ns,
          s.first_time_ns, s.last_time_ns, s.live_first_time_ns, s.live_last_time_ns,
          s.live_time_sum_ns);
    for (size_t i = 0; i < LifetimeHistogram::kClasses; ++i) {
      if (s.lifetimes[i] != 0) write("lifetimes", i, s.lifetimes[i]);
    }
    for (size_t i = 0; i < kSiteSizeClasses; ++i) {
      if (s.sizes[i] != 0) write("sizes", i, s.sizes[i]);
    }
    for (const SeriesPoint& p : s.series) {
      write("series", p.interval, p.allocations, p.frees, p.live_blocks, p.low_bytes, p.high_bytes,
            p.live_bytes);
    }
    write("moves", s.moves->reallocations, s.moves->grown, s.moves->moved, s.moves->copied_bytes,
          s.moves->longest_chain, s.moves->container_growths, s.moves->container_copied_bytes);
  }
  for (const ThreadSummary& t : a.threads) {
    write("thread", t.id.value, t.allocations, t.frees, t.bytes_allocated, t.live_bytes,
          t.live_blocks, t.temporary, t.first_time_ns, t.last_time_ns);
    for (uint32_t i = 0; i < a.held_intervals; ++i) out << t.held.At(i) << ' ';
  }
  for (const ThreadExchange& e : a.exchanges) {
    write("exchange", e.from.value, e.to.value, e.blocks, e.bytes);
  }
  for (const BlockEnds& e : a.block_ends) {
    write("ends", e.from.value, static_cast<int>(e.from_function), e.to.value,
          static_cast<int>(e.by), e.times);
  }
  for (const TimelinePoint& p : a.timeline) {
    write("point", p.time_ns, p.live_bytes, p.live_blocks, p.usable_bytes, p.max_live_bytes,
          p.allocations, p.frees, p.bytes_allocated);
  }
  for (const LiveBlock& b : a.live) {
    write("live", b.address, b.bytes, b.stack.value, static_cast<int>(b.function), b.time_ns);
  }
  for (size_t i = 0; i < kSizeClasses; ++i) {
    write("size", a.sizes.allocations[i], a.sizes.bytes[i], a.sizes.live_blocks[i]);
  }
  for (uint32_t id = 1; id <= trace.stacks->size(); ++id) {
    const StackNode& node = trace.stacks->node(StackId{id});
    write("node", node.pc, node.parent.value, node.instance);
  }
  return out.str();
}

AnalyzedTrace AnalyzeWith(const std::string& bytes, unsigned jobs, Range range = {}) {
  AnalyzeOptions options;
  options.keep_live_blocks = true;
  options.jobs = jobs;
  options.range = range;
  return Analyze(bytes, options);
}

void ExpectTheSameForAnyJobs(const std::string& bytes) {
  const std::string one = Describe(AnalyzeWith(bytes, 1));
  for (const unsigned jobs : kJobs) {
    EXPECT_EQ(Describe(AnalyzeWith(bytes, jobs)), one) << jobs << " jobs";
  }
}

// The heap after each action.
struct Instant {
  uint64_t time_ns;
  uint64_t live_bytes, live_blocks, allocations, frees, bytes_allocated;
};

std::vector<Instant> InstantsOf(const std::vector<Action>& history) {
  std::vector<Instant> instants(1);
  std::map<uint64_t, uint64_t> size_of;
  for (const Action& action : history) {
    Instant now = instants.back();
    now.time_ns = action.time_ns;
    const bool failed = action.kind == Action::kResult && action.address == 0 && action.size != 0;
    if (action.kind == Action::kFree || (action.kind == Action::kResult && !failed)) {
      const uint64_t address = action.kind == Action::kFree ? action.address : action.old_address;
      now.live_bytes -= size_of.at(address);
      size_of.erase(address);
      --now.live_blocks;
      ++now.frees;
    }
    if ((action.kind == Action::kAlloc || action.kind == Action::kResult) && action.address != 0) {
      now.live_bytes += action.size;
      now.bytes_allocated += action.size;
      size_of[action.address] = action.size;
      ++now.live_blocks;
      ++now.allocations;
    }
    instants.push_back(now);
  }
  return instants;
}

// Each point of the timeline tells what was before its time; the last of what there is.
void ExpectTimelineIs(const Analysis& analysis, const std::vector<Instant>& instants) {
  size_t i = 0;
  for (const TimelinePoint& point : analysis.timeline) {
    const Instant before = instants[i];
    uint64_t most = before.live_bytes;
    const bool last = &point == &analysis.timeline.back();
    while (i + 1 < instants.size() && (last || instants[i + 1].time_ns < point.time_ns)) {
      most = std::max(most, instants[++i].live_bytes);
    }
    EXPECT_EQ(point.live_bytes, instants[i].live_bytes);
    EXPECT_EQ(point.live_blocks, instants[i].live_blocks);
    EXPECT_EQ(point.max_live_bytes, most);
    EXPECT_EQ(point.allocations, instants[i].allocations - before.allocations);
    EXPECT_EQ(point.frees, instants[i].frees - before.frees);
    EXPECT_EQ(point.bytes_allocated, instants[i].bytes_allocated - before.bytes_allocated);
  }
  EXPECT_EQ(i + 1, instants.size());
}

HistoryOptions RandomOptions(std::mt19937_64& random) {
  HistoryOptions options;
  options.actions = 1 + static_cast<int>(random() % 300);
  options.threads = 1 + static_cast<int>(random() % 6);
  options.addresses = 2 + static_cast<int>(random() % 60);
  options.sleep_chance = random() % 2 == 0 ? 0 : 0.02;
  options.sleep_actions = 30;
  options.failures = random() % 2 == 0;
  return options;
}

TEST(EngineTest, AgreesWithTheSlowModelAtEveryInstant) {
  std::mt19937_64 random(20260101);
  for (int round = 0; round < 1500 / kOneIn; ++round) {
    const std::vector<Action> history = MakeHistory(RandomOptions(random), random);
    TraceOptions stamps;
    stamps.stamp_after = 0;
    stamps.stamp_changes_of_owner = random() % 2 == 0;  // else the order is found by waiting
    if (!stamps.stamp_changes_of_owner) stamps.stamp_after = 1;
    stamps.flush = random() % 2 == 0 ? 0.02 : 0.3;
    const std::string raw = TraceOf(history, stamps, random);
    const std::string packed = Packed(raw, 64 << random() % 8);
    const Truth truth = TruthOf(history);
    const AnalyzedTrace whole = AnalyzeWith(packed, 1);
    ExpectIs(whole, truth);
    ExpectTimelineIs(whole.analysis, InstantsOf(history));
    const std::string description = Describe(whole);
    EXPECT_EQ(Describe(AnalyzeWith(raw, 1)), description);
    EXPECT_EQ(Describe(AnalyzeWith(packed, kJobs[round % 3])), description);
    EXPECT_EQ(Describe(AnalyzeWith(raw, kJobs[(round + 1) % 3])), description);
    for (int i = 0; i < 3; ++i) {
      const size_t length = 1 + random() % history.size();
      const std::vector<Action> begin(history.begin(),
                                      history.begin() + static_cast<ptrdiff_t>(length));
      ExpectIs(AnalyzeWith(packed, kJobs[i], {0, begin.back().time_ns}), TruthOf(begin));
    }
    if (HasFailure()) FAIL() << "round " << round;
  }
}

// Where the engine's tables grow, and more than once.
TEST(EngineTest, AgreesWithTheSlowModelOnLargeHeaps) {
  std::mt19937_64 random(20260104);
  for (int round = 0; round < 200 / kOneIn; ++round) {
    HistoryOptions options;
    options.actions = 10'000 + static_cast<int>(random() % 20'000);
    options.threads = 1 + static_cast<int>(random() % 4);
    options.addresses = 20'000;
    options.sites = 50;
    options.scattered = true;
    options.large = true;
    const std::vector<Action> history = MakeHistory(options, random);
    const std::string packed = Packed(TraceOf(history, {1, 0, 0.001, true}, random), 1 << 16);
    ExpectIs(AnalyzeWith(packed, 1 + round % 2), TruthOf(history));
    if (HasFailure()) FAIL() << "round " << round;
  }
}

// As the library writes: a stamp every few events and where a block changed hands. What belongs to an
// address is exact then.
TEST(EngineTest, AgreesWithTheSlowModelWhereStampsAreFew) {
  std::mt19937_64 random(20260102);
  for (int round = 0; round < 1000 / kOneIn; ++round) {
    const std::vector<Action> history = MakeHistory(RandomOptions(random), random);
    const std::string packed = Packed(TraceOf(history, {1.0 / 16, 0, 0.05, true}, random), 512);
    const Truth truth = TruthOf(history);
    const AnalyzedTrace trace = AnalyzeWith(packed, 3);
    const Analysis& a = trace.analysis;
    EXPECT_EQ(Describe(trace), Describe(AnalyzeWith(packed, 1)));
    EXPECT_EQ(a.coverage.unordered_events + a.coverage.unknown_frees + a.coverage.unseen_frees, 0u);
    EXPECT_EQ(a.totals.allocations, truth.allocations);
    EXPECT_EQ(a.totals.frees, truth.frees);
    EXPECT_EQ(a.totals.bytes_allocated, truth.bytes_allocated);
    EXPECT_EQ(a.totals.reallocations, truth.reallocations);
    std::map<uint64_t, uint64_t> live;
    for (const auto& [address, block] : truth.live) live[address] = block.size;
    EXPECT_EQ(LiveSizes(a), live);
    ASSERT_EQ(a.sites.size(), truth.sites.size());
    for (const Site& site : a.sites) {
      const uint64_t pc = trace.stacks->node(site.stack).pc;
      const TrueSite& is = truth.sites.at(
          {static_cast<uint32_t>((pc - PcOf(0)) / 16), static_cast<int>(site.function)});
      EXPECT_EQ(site.allocations, is.allocations);
      EXPECT_EQ(site.frees, is.frees);
      EXPECT_EQ(site.live_bytes, is.live_bytes);
      EXPECT_EQ(site.live_blocks, is.live_blocks);
      EXPECT_EQ(site.wasted_bytes, is.wasted);
      EXPECT_EQ(site.freed_by_other_thread, is.freed_by_other);
      EXPECT_EQ(site.largest_bytes, is.largest);
    }
    if (HasFailure()) FAIL() << "round " << round;
  }
}

// The loop for the events that there are most of (heap_run.h) is not taken where blocks are selected. A
// filter that every block passes asks for the same figures without it.
TEST(EngineTest, RunsOfPlainEventsGiveWhatSingleOnesDo) {
  std::mt19937_64 random(20260105);
  for (int round = 0; round < 800 / kOneIn; ++round) {
    HistoryOptions history = RandomOptions(random);
    history.actions *= 1 + static_cast<int>(random() % 10);
    TraceOptions stamps;
    stamps.stamp_before = 1.0 / 16;
    stamps.stamp_after = 0;
    stamps.flush = 0.02;
    stamps.stamp_changes_of_owner = true;
    const std::string packed =
        Packed(TraceOf(MakeHistory(history, random), stamps, random), 64 << random() % 12);
    AnalyzeOptions options;
    options.keep_live_blocks = true;
    options.jobs = 1 + round % 2;
    const std::string with_runs = Describe(Analyze(packed, options));
    options.filter.sites = [](StackId) { return true; };
    EXPECT_EQ(with_runs, Describe(Analyze(packed, options))) << "round " << round;
    if (HasFailure()) break;
  }
}

// Where stamps are too few and the order is found by waiting and repair.
TEST(EngineTest, AnyNumberOfThreadsFindsTheSameOrder) {
  std::mt19937_64 random(20260103);
  for (int round = 0; round < 400 / kOneIn; ++round) {
    const std::vector<Action> history = MakeHistory(RandomOptions(random), random);
    TraceOptions stamps;
    stamps.stamp_before = 0.1;
    stamps.stamp_after = 0.1;
    stamps.flush = 0.1;
    const std::string raw = TraceOf(history, stamps, random);
    ExpectTheSameForAnyJobs(round % 2 == 0 ? raw : Packed(raw, 256));
    if (HasFailure()) FAIL() << "round " << round;
  }
}

// A trace of which blocks are damaged, and what is left of its history.
struct Damaged {
  std::string bytes;
  std::vector<Action> left;
  uint64_t blocks = 0;
};

Damaged DamagedTrace(std::vector<Action> history, std::mt19937_64& random) {
  struct Written {
    size_t begin, end;
    std::vector<size_t> actions;
  };
  TraceBuilder::Options options;
  options.stamp_rule = format::StampRule::kChangeOfOwner;
  TraceBuilder trace(options);
  std::vector<Written> blocks;
  std::map<uint32_t, std::vector<size_t>> open;  // actions of the block that a thread fills
  const auto flush = [&](uint32_t thread, uint64_t now) {
    const size_t begin = trace.bytes().size();
    trace.Thread(thread).Flush(now);
    blocks.push_back({begin, trace.bytes().size(), std::move(open[thread])});
    open[thread].clear();
  };
  for (size_t i = 0; i < history.size(); ++i) {
    Action& action = history[i];
    // So far apart that no two of them may have been in the other order.
    action.time_ns = (i + 1) * 200'000'000;
    ThreadScript& thread = trace.Thread(action.thread, 100 + action.thread, "t", action.time_ns);
    thread.At(action.time_ns);
    // A stack that was told in a block that is lost is not known.
    thread.Node(action.site, PcOf(action.site));
    if (action.kind == Action::kAlloc) {
      thread.Malloc(action.address, action.size, action.site, action.waste);
    } else {
      thread.Free(action.address);
    }
    open[action.thread].push_back(i);
    if (random() % 8 == 0) flush(action.thread, action.time_ns);
  }
  for (const auto& [thread, actions] : open) {
    if (!actions.empty()) flush(thread, history.back().time_ns + 1);
  }
  Damaged damaged;
  damaged.bytes = trace.Build();
  std::vector<bool> lost(history.size());
  for (const Written& block : blocks) {
    if (block.actions.empty() || random() % 4 != 0) continue;
    // Every block ends in the padding behind its payload, which no checksum covers.
    format::BlockHeader header;
    size_t at = block.begin;
    for (;; at += 64) {  // records may have come before it
      memcpy(&header, damaged.bytes.data() + at, sizeof(header));
      if (header.magic == format::kBlockMagic && header.kind == format::BlockKind::kEvents) break;
    }
    damaged.bytes[at + sizeof(header) + random() % header.payload_bytes] ^= 0x10;
    ++damaged.blocks;
    for (const size_t action : block.actions) lost[action] = true;
  }
  for (size_t i = 0; i < history.size(); ++i) {
    if (!lost[i]) damaged.left.push_back(history[i]);
  }
  return damaged;
}

TEST(EngineTest, AgreesWithTheSlowModelOnDamagedTraces) {
  std::mt19937_64 random(20260104);
  uint64_t damaged_blocks = 0, unknown_frees = 0, unseen_frees = 0;
  for (int round = 0; round < 500 / kOneIn; ++round) {
    HistoryOptions options = RandomOptions(random);
    options.reallocs = options.failures = false;
    const Damaged damaged = DamagedTrace(MakeHistory(options, random), random);
    struct Held {
      uint64_t size;
      uint32_t site;
    };
    std::map<uint64_t, Held> live;
    std::map<uint32_t, uint64_t> live_of_site, peak_of_site;
    uint64_t allocations = 0, frees = 0, unknown = 0, unseen = 0, bytes = 0, peak = 0;
    const auto release = [&](uint64_t address) {
      bytes -= live[address].size;
      live_of_site[live[address].site] -= live[address].size;
      live.erase(address);
      ++frees;
    };
    for (const Action& action : damaged.left) {
      if (action.kind == Action::kFree) {
        if (live.contains(action.address)) {
          release(action.address);
        } else {
          ++unknown;  // its allocation was lost
        }
        continue;
      }
      if (live.contains(action.address)) {  // its free was
        ++unseen;
        release(action.address);
      }
      ++allocations;
      live[action.address] = {action.size, action.site};
      bytes += action.size;
      uint64_t& of_site = live_of_site[action.site];
      of_site += action.size;
      peak = std::max(peak, bytes);
      peak_of_site[action.site] = std::max(peak_of_site[action.site], of_site);
    }
    const AnalyzedTrace trace = AnalyzeWith(damaged.bytes, 1);
    const Analysis& a = trace.analysis;
    EXPECT_EQ(a.coverage.lost_blocks, damaged.blocks);
    EXPECT_EQ(a.coverage.unknown_frees, unknown);
    EXPECT_EQ(a.coverage.unseen_frees, unseen);
    EXPECT_EQ(a.coverage.unordered_events, 0u);
    EXPECT_EQ(a.totals.allocations, allocations);
    EXPECT_EQ(a.totals.frees, frees);
    EXPECT_EQ(a.totals.live_bytes, bytes);
    EXPECT_EQ(a.totals.peak_live_bytes, peak);
    for (const Site& site : a.sites) {
      const auto id = static_cast<uint32_t>((trace.stacks->node(site.stack).pc - PcOf(0)) / 16);
      EXPECT_EQ(site.live_bytes, live_of_site[id]);
      EXPECT_EQ(site.peak_bytes, peak_of_site[id]);
    }
    std::map<uint64_t, uint64_t> sizes;
    for (const auto& [address, block] : live) sizes[address] = block.size;
    EXPECT_EQ(LiveSizes(a), sizes);
    ExpectTheSameForAnyJobs(damaged.bytes);
    if (HasFailure()) FAIL() << "round " << round;
    damaged_blocks += damaged.blocks;
    unknown_frees += unknown;
    unseen_frees += unseen;
  }
  // It was about something.
  EXPECT_GT(damaged_blocks, 500u / kOneIn);
  EXPECT_GT(unknown_frees, 500u / kOneIn);
  EXPECT_GT(unseen_frees, 500u / kOneIn);
}

TEST(EngineTest, AnyNumberOfThreadsSeesTheSameDamage) {
  std::mt19937_64 random(20260105);
  for (int round = 0; round < 300 / kOneIn; ++round) {
    const std::vector<Action> history = MakeHistory(RandomOptions(random), random);
    std::string bytes = TraceOf(history, {0.5, 0, 0.1, round % 2 == 0}, random);
    if (random() % 2 == 0) bytes = Packed(bytes, 256);
    for (unsigned i = 0; i < 1 + random() % 4; ++i) {
      // Not in the header of the file, without which there is no trace.
      const size_t at = sizeof(format::FileHeader) + random() % (bytes.size() - sizeof(format::FileHeader));
      bytes[at] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes.resize(bytes.size() - random() % (bytes.size() / 2));
    ExpectTheSameForAnyJobs(bytes);
    if (HasFailure()) FAIL() << "round " << round;
  }
}

// The result is of what was read, as with a range that ends there.
TEST(EngineTest, AReadingThatIsStoppedSaysSo) {
  std::mt19937_64 random(20260106);
  HistoryOptions options;
  options.actions = 60'000;
  options.addresses = 200;
  const std::vector<Action> history = MakeHistory(options, random);
  const std::string bytes = TraceOf(history, {1, 0, 0.01, true}, random);
  AnalyzeOptions analyze;
  analyze.keep_live_blocks = true;
  int asked = 0;
  analyze.stop = [&] { return ++asked == 3; };
  const AnalyzedTrace part = Analyze(bytes, analyze);
  const Analysis& a = part.analysis;
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(a.coverage.interrupted);
  EXPECT_GT(a.coverage.read_share, 0.1);
  EXPECT_LT(a.coverage.read_share, 0.9);
  EXPECT_FALSE(a.range.whole());
  std::vector<Action> begin;
  for (const Action& action : history) {
    if (action.time_ns <= a.range.to_ns) begin.push_back(action);
  }
  ASSERT_LT(begin.size(), history.size());
  ExpectIs(part, TruthOf(begin));
  analyze.stop = nullptr;
  EXPECT_FALSE(Analyze(bytes, analyze).analysis.coverage.interrupted);

  // Lifetimes take two passes: the second one reads as far as the first came.
  // And blocks are as old as they were then.
  for (const uint64_t least_ns : {1, 20'000}) {
    analyze.filter.lifetimes.low = least_ns;
    analyze.range = {};
    analyze.stop = [&] { return ++asked >= 3; };
    asked = 0;
    const AnalyzedTrace chosen = Analyze(bytes, analyze);
    EXPECT_TRUE(chosen.analysis.coverage.interrupted);
    EXPECT_GT(chosen.analysis.coverage.read_share, 0.1);
    EXPECT_LT(chosen.analysis.coverage.read_share, 0.9);
    analyze.stop = nullptr;
    analyze.range = chosen.analysis.range;
    EXPECT_FALSE(analyze.range.whole());
    EXPECT_GT(chosen.analysis.totals.allocations, 0u);
    EXPECT_EQ(chosen.analysis.totals.allocations, Analyze(bytes, analyze).analysis.totals.allocations);
  }
}

}  // namespace
}  // namespace memtrace::report
