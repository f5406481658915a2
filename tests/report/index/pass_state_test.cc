// An analysis that takes a state up in the middle of a trace says what the one says that began at the
// beginning: every member of it, for every kind of trace, range and selection; and a state that is
// not what it should be is refused, or at least harmless.

#include "report/analysis/pass_state.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "report/index/analysis_codec.h"
#include "report/state/packed_values.h"
#include "tests/report/client_program.h"
#include "tests/report/history.h"
#include "tests/report/random_trace.h"
#include "tests/report/test_util.h"

namespace memtrace::report {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kOneIn = 10;
#else
constexpr int kOneIn = 1;
#endif

// States in memory.
class States : public PassKeeper, public PassSource {
 public:
  explicit States(int every) : every_(every) {}
  States(const States&) = default;
  States& operator=(const States& other) {
    points = other.points;
    pieces = other.pieces;
    states = other.states;
    return *this;
  }

  int every_events() const override { return every_; }
  bool Wants(const PassPoint&) override { return true; }
  void Keep(const PassPoint& point, std::string piece, std::string state) override {
    points.push_back(point);
    pieces.push_back(std::move(piece));
    states.push_back(std::move(state));
  }
  bool Find(uint64_t before_ns, uint64_t ticks, PassState* state) override {
    size_t found = points.size();
    while (found > 0 && (points[found - 1].latest_ns >= before_ns ||
                         points[found - 1].latest_ticks > ticks)) {
      --found;
    }
    if (found == 0) return false;
    ++given;
    state->pieces.assign(pieces.begin(), pieces.begin() + static_cast<ptrdiff_t>(found));
    state->state = states[found - 1];
    return true;
  }

  std::vector<PassPoint> points;
  std::vector<std::string> pieces, states;
  int given = 0;

 private:
  const int every_;
};

AnalyzedTrace WholeWithStates(const std::string& bytes, States* states) {
  AnalyzeOptions options;
  options.jobs = 1;
  options.keep_live_blocks = true;
  options.keeper = states;
  return Analyze(bytes, options);
}

AnalyzeOptions Question(std::mt19937_64& random, uint64_t duration) {
  AnalyzeOptions options;
  options.jobs = 1 + static_cast<unsigned>(random() % 3);
  options.keep_live_blocks = true;
  if (random() % 3 == 0) {
    options.range.to_ns = random() % (duration + 1000);
  } else {
    options.range.from_ns = random() % (duration + 1000);
    options.range.to_ns = random() % 4 == 0 ? UINT64_MAX
                                            : options.range.from_ns + random() % (duration + 1000);
  }
  if (random() % 6 == 0) options.thread = ThreadId{static_cast<uint32_t>(1 + random() % 4)};
  if (random() % 6 == 0) options.filter.sizes = {10, 200};
  if (random() % 6 == 0) options.filter.sites = [](StackId stack) { return stack.value % 2 == 0; };
  if (random() % 10 == 0) options.filter.lifetimes = {0, 1'000'000};
  return options;
}

// Which members of the two are different, by number, and in them which; empty: none.
std::string Differences(const AnalyzedTrace& a, const AnalyzedTrace& b) {
  std::string different;
  for (uint32_t id = 1; id <= std::max(a.stacks->size(), b.stacks->size()); ++id) {
    if (id <= a.stacks->size() && id <= b.stacks->size() &&
        a.stacks->node({id}) == b.stacks->node({id})) {
      continue;
    }
    different = " stack " + std::to_string(id) + " of " + std::to_string(a.stacks->size()) +
                " and " + std::to_string(b.stacks->size());
    const StackTable& of = id <= b.stacks->size() ? *b.stacks : *a.stacks;
    different += " pc " + std::to_string(of.node({id}).pc) + " marker " + std::to_string(of.node({id}).is_marker());
    break;
  }
  const auto members = [](const auto& object) {
    std::vector<std::string> all;
    index::ForEachField(object, [&](const auto& member) {
      index::PackedWriter out;
      index::Put(member, out);
      all.push_back(out.Take());
    });
    return all;
  };
  const auto compare = [&](const char* what, const auto& x, const auto& y) {
    const auto of_x = members(x), of_y = members(y);
    for (size_t i = 0; i < of_x.size(); ++i) {
      if (of_x[i] != of_y[i]) different += " " + std::string(what) + std::to_string(i);
    }
  };
  compare("analysis.", a.analysis, b.analysis);
  compare("coverage.", a.analysis.coverage, b.analysis.coverage);
  compare("totals.", a.analysis.totals, b.analysis.totals);
  compare("faults.", a.analysis.fault_details, b.analysis.fault_details);
  for (size_t i = 0; i < std::min(a.analysis.sites.size(), b.analysis.sites.size()); ++i) {
    compare("site.", a.analysis.sites[i], b.analysis.sites[i]);
  }
  for (size_t i = 0; i < std::min(a.analysis.threads.size(), b.analysis.threads.size()); ++i) {
    compare("thread.", a.analysis.threads[i], b.analysis.threads[i]);
  }
  return different;
}

// How many of the questions were answered from a state.
int ExpectSameAnswers(const std::string& bytes, uint64_t duration, int questions,
                      std::mt19937_64& random) {
  States states(1 + static_cast<int>(random() % 60));
  const AnalyzedTrace whole = WholeWithStates(bytes, &states);
  AnalyzeOptions plain;
  plain.jobs = 1;
  plain.keep_live_blocks = true;
  EXPECT_TRUE(index::EncodeTrace(whole) == index::EncodeTrace(Analyze(bytes, plain)))
      << "keeping states changes the analysis";
  for (int i = 0; i < questions; ++i) {
    AnalyzeOptions options = Question(random, duration);
    auto reader = Read(bytes), again = Read(bytes);
    if (!reader.ok() || !again.ok()) return states.given;
    auto without = AnalyzeTrace(**again, options);
    options.source = &states;
    const int given = states.given;
    auto found = AnalyzeTrace(**reader, options);
    EXPECT_EQ(found.status(), without.status());  // both, where the range begins behind the last event
    if (!found.ok() || !without.ok()) continue;
    const AnalyzedTrace expected = *std::move(without);
    const AnalyzedTrace answer = *std::move(found);
    const bool same = answer.stacks != nullptr &&
                      index::EncodeTrace(answer) == index::EncodeTrace(expected);
    EXPECT_TRUE(same) << options.range.from_ns << " to " << options.range.to_ns << " with "
                      << states.points.size() << " states, " << states.given - given << " used";
    if (!same && answer.stacks != nullptr) ADD_FAILURE() << Differences(expected, answer);
    if (!same) break;
  }
  return states.given;
}

TEST(PassStateTest, AnswersAreTheSameForTracesOfEverything) {
  std::mt19937_64 random(20261122);
  int given = 0;
  for (int round = 0; round < 250 / kOneIn; ++round) {
    RandomTraceOptions options;
    options.events = 20 + static_cast<int>(random() % 500);
    options.threads = 1 + static_cast<int>(random() % 7);
    options.step_ns = 1 + random() % 20'000;
    uint64_t duration = 0;
    std::string bytes = RandomTrace(options, random, &duration);
    // Damage in blocks; the header of the file is the trace.
    for (unsigned i = random() % 3 == 0 ? random() % 4 : 0; i > 0; --i) {
      bytes[256 + random() % (bytes.size() - 256)] ^= static_cast<char>(1 << random() % 8);
    }
    given += ExpectSameAnswers(bytes, duration, 6, random);
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(given, 500 / kOneIn);
}

TEST(PassStateTest, AnswersAreTheSameForOrderlyHistories) {
  std::mt19937_64 random(20261123);
  for (int round = 0; round < 100 / kOneIn; ++round) {
    HistoryOptions history;
    history.actions = 10 + static_cast<int>(random() % 500);
    history.threads = 1 + static_cast<int>(random() % 6);
    history.addresses = 2 + static_cast<int>(random() % 60);
    history.sleep_chance = random() % 2 == 0 ? 0 : 0.02;
    const std::vector<Action> actions = MakeHistory(history, random);
    TraceOptions stamps;
    stamps.stamp_before = random() % 2 == 0 ? 1 : 0.2;
    stamps.stamp_after = random() % 2 == 0 ? 0 : 0.2;
    stamps.stamp_changes_of_owner = random() % 2 == 0;
    ExpectSameAnswers(TraceOf(actions, stamps, random), actions.back().time_ns, 6, random);
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
}

// What a report leaves out of them is counted from where the range begins.
TEST(PassStateTest, AnswersAreTheSameForMoreNamesThanAreToldApart) {
  ClientProgram program;
  const auto turns = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      const std::string name = std::to_string(i);
      program.Phase(format::PhaseEdge::kMark, name).Phase(format::PhaseEdge::kBegin, name);
      program.Phase(format::PhaseEdge::kEnd, name).Phase(format::PhaseEdge::kMark, "turn");
      program.Phase(format::PhaseEdge::kBegin, "step");
      program.Malloc(0x10000 + static_cast<uint64_t>(i) * 64, 8);
      program.Phase(format::PhaseEdge::kEnd, "step");
    }
  };
  program.Phase(format::PhaseEdge::kBegin, "all");
  turns(0, 10'500);
  const uint64_t first = program.now();
  turns(10'500, 12'000);
  const uint64_t duration = program.now();
  const std::string bytes = program.Bytes();
  States states(7000);
  WholeWithStates(bytes, &states);
  for (const auto& [from, to] : {std::pair(uint64_t{0}, first), {first / 2, first},
                                 {first / 2, UINT64_MAX}, {first, UINT64_MAX},
                                 {duration - 1'000'000, duration - 1000}}) {
    AnalyzeOptions options;
    options.jobs = 1;
    options.range = {from, to};
    const AnalyzedTrace plain = Analyze(bytes, options);
    const int given = states.given;
    options.source = &states;
    const AnalyzedTrace answer = Analyze(bytes, options);
    EXPECT_EQ(states.given, given + 1) << from;
    EXPECT_TRUE(index::EncodeTrace(plain) == index::EncodeTrace(answer))
        << from << " to " << to << Differences(plain, answer);
  }
}

// A second pass over a trace has the stacks of the first (--match).
TEST(PassStateTest, AnswersAreTheSameWithStacksOfAnEarlierPass) {
  std::mt19937_64 random(20261124);
  for (int round = 0; round < 100 / kOneIn; ++round) {
    uint64_t duration = 0;
    const std::string bytes = RandomTrace({}, random, &duration);
    States states(20);
    WholeWithStates(bytes, &states);
    AnalyzeOptions options;
    options.range.from_ns = duration / 2;
    const AnalyzedTrace first = Analyze(bytes, options);
    options.stacks = first.stacks.get();
    AnalyzedTrace plain = Analyze(bytes, options);
    options.source = &states;
    AnalyzedTrace second = Analyze(bytes, options);
    plain.stacks = std::make_unique<StackTable>(*first.stacks);
    second.stacks = std::make_unique<StackTable>(*first.stacks);
    EXPECT_TRUE(index::EncodeTrace(plain) == index::EncodeTrace(second));
  }
}

// Asked often where the pass stands, and never wants a state.
class OftenAsked : public PassKeeper {
 public:
  explicit OftenAsked(int every) : every_(every) {}
  int every_events() const override { return every_; }
  bool Wants(const PassPoint&) override { return false; }
  void Keep(const PassPoint&, std::string, std::string) override {}

 private:
  const int every_;
};

// All threads are then at the same instant.
TEST(PassStateTest, APassThatIsStoppedSaysWhatAQuestionUpToThereSays) {
  std::mt19937_64 random(20261129);
  int stopped = 0;
  for (int round = 0; round < 300 / kOneIn; ++round) {
    RandomTraceOptions make;
    make.events = 50 + static_cast<int>(random() % 500);
    make.threads = 1 + static_cast<int>(random() % 7);
    make.step_ns = 1 + random() % 20'000;
    uint64_t duration = 0;
    const std::string bytes = RandomTrace(make, random, &duration);
    OftenAsked often(1 + static_cast<int>(random() % 20));
    AnalyzeOptions options;
    options.jobs = 1;
    options.keep_live_blocks = true;
    options.keeper = &often;
    uint64_t left = random() % 40;
    options.stop = [&] { return left-- == 0; };
    AnalyzedTrace part = Analyze(bytes, options);
    if (!part.analysis.coverage.interrupted || part.analysis.range.to_ns == 0) continue;
    ++stopped;
    EXPECT_LE(part.analysis.coverage.read_share, 1);
    part.analysis.coverage.interrupted = false;
    part.analysis.coverage.read_share = 1;
    AnalyzeOptions question;
    question.jobs = 1;
    question.keep_live_blocks = true;
    question.range.to_ns = part.analysis.range.to_ns;
    AnalyzedTrace whole = Analyze(bytes, question);
    if (whole.analysis.range.whole()) continue;  // it was stopped at the end
    whole.event_bytes_decoded = part.event_bytes_decoded;
    const bool same = index::EncodeTrace(part) == index::EncodeTrace(whole);
    EXPECT_TRUE(same) << "round " << round << Differences(whole, part);
    if (!same) break;
  }
  EXPECT_GT(stopped, 100 / kOneIn);
}

// What checksums do not catch must at least hurt nobody.
TEST(PassStateTest, AStateOfAnyBytesIsRefusedOrHarmless) {
  std::mt19937_64 random(20261125);
  int refused = 0, taken = 0;
  for (int round = 0; round < 20 / kOneIn; ++round) {
    RandomTraceOptions make;
    make.events = 200;
    uint64_t duration = 0;
    const std::string bytes = RandomTrace(make, random, &duration);
    States states(30);
    WholeWithStates(bytes, &states);
    if (states.states.empty()) continue;
    const States good = states;
    for (int i = 0; i < 40; ++i) {
      states = good;
      for (auto* parts : {&states.states, &states.pieces}) {
        if (random() % 3 == 0 && parts == &states.pieces) continue;
        for (std::string& part : *parts) {
          if (part.empty()) continue;
          for (unsigned n = 1 + random() % 3; n > 0; --n) {
            part[random() % part.size()] = static_cast<char>(random());
          }
          if (random() % 10 == 0) part.resize(random() % part.size());
        }
      }
      AnalyzeOptions options = Question(random, duration);
      options.source = &states;
      auto reader = Read(bytes);
      ASSERT_TRUE(reader.ok());
      const auto trace = AnalyzeTrace(**reader, options);
      ++(trace.ok() ? taken : refused);
      if (!trace.ok()) {
        EXPECT_TRUE(absl::IsDataLoss(trace.status())) << trace.status();
      }
    }
  }
  EXPECT_GT(refused, 100 / kOneIn);
  EXPECT_GT(taken + refused, 500 / kOneIn);
}

}  // namespace
}  // namespace memtrace::report
