// The reporter's order of events against the true one.
//
// libmemtrace_numbered.so is libmemtrace.so, of the same sources, with a number on each event:
// from one counter of all threads, taken behind the stamp, before the real free or after the
// real allocation. So for the events of one address the numbers are the order in which they
// happened. The programs do nothing but pass blocks between threads as fast as they can.

#include "report/trace/event_order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "format/event_words.h"
#include "report/analysis/analyzer.h"
#include "report/analysis/coverage.h"
#include "report/trace/trace_reader.h"
#include "tests/e2e/harness.h"
#include "tests/long_run.h"

namespace memtrace::e2e {
namespace {

using format::EventKind;
using report::EventCursor;

constexpr auto kNumber = static_cast<format::ExtendedType>(0x7fff);

// What EventOrder gives its events to. Never waits.
class NumberCheck {
 public:
  void Started(size_t stream, uint32_t) {
    if (stream >= number_.size()) number_.resize(stream + 1);
  }
  void Hole(size_t, const EventCursor&) { ++holes; }
  void Prefetch(uint64_t) {}
  bool Tick() { return true; }
  bool Apply(size_t stream, const EventCursor& cursor, bool, report::WaitList&) {
    const uint64_t* words = cursor.words();
    switch (cursor.kind()) {
      case EventKind::kExtended:
        if (format::ExtendedTypeOf(words[0]) == kNumber) number_[stream] = words[1];
        return true;
      case EventKind::kMalloc:
      case EventKind::kCalloc:
      case EventKind::kRealloc:
      case EventKind::kWideAlloc:
      case EventKind::kFree:
      case EventKind::kReallocIntent:
        Check(stream, format::AddressOf(words[0]));
        return true;
      default:
        return true;
    }
  }

  uint64_t events = 0;
  uint64_t without_number = 0;
  uint64_t out_of_order = 0;
  uint64_t changes_of_owner = 0;
  uint64_t holes = 0;

 private:
  struct Last {
    uint64_t number = 0;
    size_t stream = 0;
  };
  void Check(size_t stream, uint64_t address) {
    ++events;
    const uint64_t number = std::exchange(number_[stream], 0);
    without_number += number == 0;
    if (address == 0) return;
    Last& last = last_[address];
    out_of_order += number <= last.number;
    changes_of_owner += last.number != 0 && last.stream != stream;
    last = {number, stream};
  }

  std::vector<uint64_t> number_;             // of the event to come, by stream
  std::unordered_map<uint64_t, Last> last_;  // by address
};

struct Variant {
  const char* program;
  int threads;
  int rounds;  // of all threads together
  const char* tunables;
};
void PrintTo(const Variant& v, std::ostream* out) {
  *out << v.program << " " << v.threads << " threads " << v.tunables;
}

class TrueOrderTest : public ::testing::TestWithParam<Variant> {};

TEST_P(TrueOrderTest, IsTheOrderOfTheReporter) {
  const Variant& variant = GetParam();
  const int times = InLongRun() ? 50 : 1;
  for (int i = 0; i < times && !HasFailure(); ++i) {
    TempDir traces;
    Command command =
        Traced({.arguments = {TraceePath(variant.program), std::to_string(variant.threads),
                              std::to_string(variant.rounds / variant.threads)}},
               traces.path());
    for (auto& [name, value] : command.environment) {
      if (name == "LD_PRELOAD") value = MEMTRACE_BUILD_DIR "/tests/lib/libmemtrace_numbered.so";
    }
    command.environment.emplace_back("GLIBC_TUNABLES", variant.tunables);
    const Result run = RunCommand(command);
    ASSERT_EQ(run.Outcome(), "exit 0") << run.err;
    const std::string trace = TraceOf(traces.path(), variant.program);
    auto reader = report::TraceReader::Open(trace);
    ASSERT_TRUE(reader.ok()) << reader.status();
    ASSERT_EQ((*reader)->metadata().process.stamp_rule, format::StampRule::kChangeOfOwner);

    NumberCheck check;
    report::EventOrder<NumberCheck> order(reader->get(), 0, 1, &check);
    ASSERT_TRUE(order.Run());
    EXPECT_EQ(check.out_of_order, 0u) << "of " << check.events;
    EXPECT_EQ(check.without_number, 0u);
    EXPECT_EQ(check.holes, 0u);
    EXPECT_GT(check.events, static_cast<uint64_t>(variant.rounds));
    if (variant.threads > 1) {
      EXPECT_GT(check.changes_of_owner, 100u);  // else it tells nothing
    }
    RecordProperty("events", std::to_string(check.events));
    RecordProperty("changes_of_owner", std::to_string(check.changes_of_owner));

    auto analyzed = report::AnalyzeTrace(trace, {});
    ASSERT_TRUE(analyzed.ok()) << analyzed.status();
    const report::Coverage& coverage = analyzed->analysis.coverage;
    EXPECT_EQ(coverage.unordered_events, 0u);
    EXPECT_EQ(coverage.unknown_frees, 0u);
    EXPECT_EQ(coverage.unseen_frees, 0u);
  }
}

constexpr char kNoCache[] = "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1";
constexpr char kOneArena[] = "glibc.malloc.arena_max=1";
constexpr char kDefault[] = "glibc.malloc.arena_test=8";

INSTANTIATE_TEST_SUITE_P(
    Programs, TrueOrderTest,
    ::testing::Values(Variant{"pass_blocks_between_threads", 1, 20000, kDefault},
                      Variant{"pass_blocks_between_threads", 2, 1000000, kDefault},
                      Variant{"pass_blocks_between_threads", 8, 200000, kDefault},
                      Variant{"pass_blocks_between_threads", 64, 200000, kDefault},
                      Variant{"pass_blocks_between_threads", 4, 200000, kOneArena},
                      Variant{"pass_blocks_between_threads", 4, 200000, kNoCache},
                      Variant{"hand_blocks_over", 2, 400000, kDefault},
                      Variant{"hand_blocks_over", 3, 400000, kNoCache},
                      Variant{"hand_blocks_over", 16, 1000000, kDefault},
                      Variant{"hand_blocks_over", 16, 1000000, kNoCache}));

}  // namespace
}  // namespace memtrace::e2e
