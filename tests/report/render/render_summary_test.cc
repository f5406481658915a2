// What is told of a run as a whole: how it ended, what it kept, and what is not known.

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "report/leak/leak_kinds.h"
#include "report/render/formats.h"
#include "report/render/summary_facts.h"
#include "report/render/text_report.h"
#include "tests/report/render/render_made_up.h"

namespace memtrace::report::render {
namespace {

using End = ProcessInfo::End;

class SummaryTest : public ::testing::Test {
 protected:
  // The sentences by their labels; two of one label behind each other.
  std::map<std::string, std::string> Facts() {
    std::map<std::string, std::string> facts;
    for (const Fact& fact : SummaryFacts(trace_.View())) {
      std::string& text = facts[std::string(fact.label)];
      text += (text.empty() ? "" : " | ") + fact.text;
    }
    return facts;
  }
  std::string Ended() { return Facts()["Ended"]; }
  void Scan() {
    LeakScan scan;
    scan.number = 1;
    scan.state = LeakScan::State::kDone;
    trace_.analysis.leak_scans.push_back(scan);
  }

  MadeUp trace_;
  ProcessInfo& process_ = trace_.analysis.process;
  Coverage& coverage_ = trace_.analysis.coverage;
};

TEST_F(SummaryTest, TellsHowItEnded) {
  process_.exit_status = 3;
  EXPECT_EQ(Ended(), "exit status 3, after 2.00 s");
  process_.exit_work_ns = 500'000'000;
  EXPECT_EQ(Ended(), "exit status 3, after 2.00 s, 500 ms of it memtrace's work at the exit");
  process_.exit_work_ns = 0;
  process_.end = End::kExec;
  EXPECT_EQ(Ended(), "replaced itself by exec, after 2.00 s");
  process_.end = End::kSignal;
  process_.end_signal = 11;
  EXPECT_EQ(Ended(), "killed by SIGSEGV, after 2.00 s");
  process_.end = End::kCut;
  process_.last_event_ns = 1'500'000'000;
  EXPECT_EQ(Ended(), "not in the trace (killed, still running, a raw exit_group, or it could no "
                     "longer write); "
                     "the last event is after 1.50 s");
  process_.at_work = true;
  EXPECT_EQ(Ended(), "not yet: it is at work; the last event is after 1.50 s");
}

TEST_F(SummaryTest, TellsWhoKilledItAndWhatItHeldThen) {
  process_.end = End::kSignal;
  process_.end_signal = 9;
  process_.kill = {.verdict = format::KillVerdict::kNotOomKiller, .why = "No count went up."};
  EXPECT_EQ(Ended(), "killed by SIGKILL, not by the OOM killer, after 2.00 s");
  EXPECT_FALSE(Facts().contains("Then"));
  process_.kill.verdict = format::KillVerdict::kNotKnown;
  EXPECT_EQ(Ended(), "killed by SIGKILL, perhaps by the OOM killer, after 2.00 s");
  process_.kill.verdict = format::KillVerdict::kOomKiller;
  process_.kill.limit_bytes = 64 << 20;
  EXPECT_EQ(Ended(), "killed by the OOM killer (SIGKILL), after 2.00 s");
  trace_.AddSite(trace_.Stack({{"main"}}), 3, 100, 2);
  EXPECT_EQ(Facts()["Then"], "the heap held 200 bytes in 2 blocks, the memory limit was 64.0 MiB | "
                             "No count went up.");
  coverage_.recording_end_ns = 500'000'000;
  EXPECT_EQ(Ended(),
            "killed by the OOM killer (SIGKILL); the recording, before it, after 500 ms");
}

TEST_F(SummaryTest, TellsWhenItStartedAndByWhom) {
  process_.forked = true;
  process_.ppid = 5;
  EXPECT_EQ(Facts()["Started"], "2025-11-21 08:10:03 UTC, pid 42 on target, forked by 5");
}

TEST_F(SummaryTest, TellsWhatIsLostAndWhatIsTheRuntimesOwn) {
  trace_.AddSite(trace_.Stack({{"main"}}), 4, 1024, 4);
  EXPECT_EQ(Facts()["Lost"], "not known: no scan told what is reachable");
  Scan();
  LeakScan& scan = trace_.analysis.leak_scans[0];
  EXPECT_EQ(Facts()["Lost"], "nothing at the exit");
  scan.totals[static_cast<size_t>(LeakKind::kDefinite)] = {1024, 1};
  scan.totals[static_cast<size_t>(LeakKind::kPossible)] = {3072, 3};
  scan.of_runtime = {1024, 2};
  EXPECT_EQ(Facts()["Lost"], "1.00 KiB in 1 block definitely lost, 2.00 KiB in 1 block "
                             "possibly lost at the exit; 1.00 KiB that look so are the "
                             "runtime's own");
  scan.frees_unseen = true;
  coverage_.dropped_events = 1;
  coverage_.events_missing = true;
  EXPECT_TRUE(Facts()["Lost"].ends_with("; some frees are not seen; not all was recorded: see "
                                        "Coverage")) << Facts()["Lost"];
}

TEST_F(SummaryTest, TellsWhatMemoryIsMemtracesOwn) {
  Faults& faults = trace_.analysis.faults;
  EXPECT_EQ(Facts()["Memory"], "peak RSS not known");
  faults.counted = false;
  EXPECT_EQ(Facts()["Faults"], "not known: the trace ends before they were counted");
  faults.counted = true;
  faults.minor = 766;
  faults.tool_minor = 234;
  faults.peak_rss_bytes = 6 << 20;
  EXPECT_EQ(Facts()["Memory"], "peak RSS 6.00 MiB");
  EXPECT_EQ(Facts()["Faults"], "766 minor, 0 major, without memtrace's own 234 minor");
  coverage_.tool_memory_bytes = 3 << 20;
  EXPECT_EQ(Facts()["Memory"], "peak RSS 6.00 MiB, of which memtrace's own at most 3.00 MiB");
  coverage_.tool_memory_bytes = 8 << 20;
  EXPECT_EQ(Facts()["Memory"],
            "peak RSS 6.00 MiB, some of it of memtrace's own mappings of 8.00 MiB");
}

TEST_F(SummaryTest, DoesNotTakeForNothingWhatIsNotKnown) {
  EXPECT_EQ(Facts()["Peak"], "nothing was ever live");
  EXPECT_EQ(Facts()["Unfreed"], "nothing: nothing was allocated");
  EXPECT_FALSE(Facts().contains("Lost"));
  coverage_.dropped_events = 4857;
  coverage_.events_missing = true;
  EXPECT_EQ(Facts()["Unfreed"], "not known: no allocation was recorded, see Coverage");
  trace_.AddSite(trace_.Stack({{"main"}}), 4, 1024, 0);
  EXPECT_EQ(Facts()["Unfreed"], "nothing of what was recorded, which is not all: see Coverage");
}

// A program may lose what it likes while it has stopped the recording.
TEST_F(SummaryTest, DoesNotTakeForNothingWhatTheProgramLeftOut) {
  Scan();
  trace_.AddSite(trace_.Stack({{"main"}}), 4, 1024, 0);
  coverage_.stops = 1;
  coverage_.stopped_ns = 5'000'000;
  EXPECT_EQ(Facts()["Lost"], "nothing at the exit");
  coverage_.stopped_allocations = 1000;
  EXPECT_EQ(Facts()["Lost"], "nothing at the exit; not all was recorded: see Coverage");
  EXPECT_EQ(Facts()["Unfreed"], "nothing of what was recorded, which is not all: see Coverage");
  TextOptions options;
  options.style.width = 200;
  const ReportView view = trace_.View();
  const std::string said =
      "recording stopped by the program 1 time for 5.00 ms: 1,000 allocations then are in no "
      "figure";
  EXPECT_NE(SummaryText(view, options).find(said), std::string::npos) << SummaryText(view, options);
  options.sections = {TextSection::kLeaks};
  EXPECT_NE(RenderText(view, options).find("none: no block that was recorded was live"),
            std::string::npos);
  words::StringSink document;
  RenderJson(view, kAllRows, document);
  const auto coverage = nlohmann::json::parse(document.text())["coverage"];
  EXPECT_EQ(coverage["all_recorded"], false);
  EXPECT_EQ(coverage["notes"][0], said);
  trace_.analysis.leak_scans.clear();
  EXPECT_NE(RenderText(trace_.View(), options).find("no unfreed blocks, of what was recorded"),
            std::string::npos);
}

TEST_F(SummaryTest, IsInTheTextAndInTheDocument) {
  process_.host = "v\033[31mm";
  const ReportView view = trace_.View();
  words::StringSink document;
  RenderJson(view, kAllRows, document);
  const auto summary = nlohmann::json::parse(document.text())["summary"];
  const std::vector<Fact> facts = SummaryFacts(view);
  ASSERT_EQ(summary.size(), facts.size());
  TextOptions options;
  options.style.width = 200;
  const std::string text = SummaryText(view, options);
  for (size_t i = 0; i < facts.size(); ++i) {
    EXPECT_EQ(summary[i]["label"], std::string(facts[i].label));
    EXPECT_EQ(summary[i]["text"], facts[i].text);
    EXPECT_NE(text.find(options.style.Name(facts[i].text)), std::string::npos) << facts[i].text;
  }
  EXPECT_EQ(text.find('\033'), std::string::npos);
}

TEST_F(SummaryTest, TellsWhatAnInterruptedReadingDidNotComeTo) {
  TextOptions options;
  options.style.width = 200;
  coverage_.interrupted = true;
  coverage_.unknown_frees = 1;
  std::string text = SummaryText(trace_.View(), options);
  EXPECT_NE(text.find("! the reading was interrupted before it was known which frees were of "
                      "blocks that had been freed before\n"), std::string::npos) << text;
  coverage_.read_share = 0.25;
  trace_.analysis.range.to_ns = 500'000'000;
  text = SummaryText(trace_.View(), options);
  EXPECT_NE(text.find("! the reading was interrupted: this is of the first 25.0 % of the events, "
                      "up to 0.500 s; what was live then may have been freed later\n"),
            std::string::npos) << text;
}

}  // namespace
}  // namespace memtrace::report::render
