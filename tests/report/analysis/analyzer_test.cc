// What a pass over a trace finds, field by field, on traces small enough to count by hand.

#include "report/analysis/analyzer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "report/analysis/coverage.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using format::AllocFunction;

TEST(AnalyzerTest, CountsTwoLeakingSites) {
  TraceBuilder builder;
  auto& main = builder.Thread(1, 4242, "main");
  main.At(1000);
  const uint32_t outer = main.Stack({0x401000, 0x402000});
  const uint32_t other = main.Stack({0x401000, 0x403000});
  main.Malloc(0x10010, 100, outer, 4).Malloc(0x10090, 100, outer, 4).Calloc(0x20010, 256, other, 8);
  main.At(9000);
  builder.End(3, 10000);
  const AnalyzedTrace trace = Analyze(builder.Build());
  const Analysis& a = trace.analysis;
  EXPECT_EQ(a.totals.allocations, 3u);
  EXPECT_EQ(a.totals.frees, 0u);
  EXPECT_EQ(a.totals.live_bytes, 456u);
  EXPECT_EQ(a.totals.live_blocks, 3u);
  EXPECT_EQ(a.totals.bytes_allocated, 456u);
  EXPECT_EQ(a.totals.peak_live_bytes, 456u);
  EXPECT_EQ(a.totals.wasted_bytes, 16u);
  EXPECT_EQ(a.coverage.events, 3u);
  EXPECT_EQ(a.coverage.marked_stacks, 0u);
  ASSERT_EQ(a.sites.size(), 2u);
  const Site* site = FindSite(trace, 0x402000);
  ASSERT_NE(site, nullptr);
  EXPECT_EQ(site->live_bytes, 200u);
  EXPECT_EQ(site->live_blocks, 2u);
  EXPECT_EQ(site->live_wasted_bytes, 8u);
  EXPECT_EQ(site->bytes_at_peak, 200u);
  EXPECT_EQ(trace.stacks->node(trace.stacks->node(site->stack).parent).pc, 0x401000u);
  EXPECT_EQ(FindSite(trace, 0x403000)->function, AllocFunction::kCalloc);
  EXPECT_EQ(a.process.end, ProcessInfo::End::kExit);
  EXPECT_EQ(a.process.exit_status, 3);
  EXPECT_EQ(a.process.duration_ns, 10000u);
  EXPECT_THAT(a.process.command, testing::ElementsAre("./app", "--fast"));
  EXPECT_EQ(a.process.build_id, "0102ab");
  ASSERT_EQ(a.threads.size(), 1u);
  EXPECT_EQ(a.threads[0].name, "main");
  EXPECT_EQ(a.threads[0].tid, 4242u);
  EXPECT_EQ(a.threads[0].live_bytes, 456u);
}

// Of two blocks that were sampled one is live; of another site, and of all, unseen ones may be.
TEST(AnalyzerTest, OfASampleWhatHasNoLiveSampleIsNotNothing) {
  constexpr uint64_t kEvery = 4096;
  TraceBuilder builder({.sample_bytes = kEvery});
  auto& main = builder.Thread(1, 4242, "main");
  main.At(1000);
  const uint32_t freed = main.Stack({0x401000, 0x402000});
  main.Malloc(0x10010, 100, freed).Free(0x10010);
  main.Malloc(0x40010, 20 * kEvery, main.Stack({0x401000, 0x403000})).At(9000);
  builder.End(0, 10000);
  const AnalyzedTrace trace = Analyze(builder.Build());
  const Site* site = FindSite(trace, 0x402000);
  ASSERT_NE(site, nullptr);
  EXPECT_EQ(site->bytes_sample->samples, 1u);
  EXPECT_EQ(site->live_sample->samples, 0u);
  EXPECT_EQ(site->live_sample->Interval95().low, 0u);
  EXPECT_GT(site->live_sample->Interval95().high, 3 * kEvery);
  const Interval live = trace.analysis.totals.live_sample.Interval95();
  EXPECT_EQ(live.low, 20 * kEvery);
  EXPECT_GT(live.high, 23 * kEvery);
  TraceBuilder empty({.sample_bytes = kEvery});
  empty.Thread(1, 4242, "main").At(1000);
  empty.End(0, 10000);
  EXPECT_GT(Analyze(empty.Build()).analysis.totals.live_sample.Interval95().high, 3 * kEvery);
}

TEST(AnalyzerTest, TellsHowTheProcessEnded) {
  const auto end = [](auto fill) {
    TraceBuilder trace;
    trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1).At(1000);
    fill(trace);
    return Analyze(trace.Build()).analysis.process;
  };
  using End = ProcessInfo::End;
  using format::ObservedEndKind;
  EXPECT_EQ(end([](TraceBuilder&) {}).end, End::kCut);
  EXPECT_EQ(end([](TraceBuilder& t) { t.End(7, 2000); }).exit_status, 7);
  EXPECT_EQ(end([](TraceBuilder& t) { t.End(0, 2000, format::EndReason::kExec); }).end, End::kExec);
  EXPECT_EQ(end([](TraceBuilder& t) { t.End(0, 1, format::EndReason::kExec); }).end, End::kCut)
      << "it went on: the exec failed";
  const ProcessInfo killed =
      end([](TraceBuilder& t) { t.ObservedEnd(ObservedEndKind::kSignal, 9); });
  EXPECT_EQ(killed.end, End::kSignal);
  EXPECT_EQ(killed.end_signal, 9);
  EXPECT_EQ(end([](TraceBuilder& t) {
              t.End(0, 2000);
              t.ObservedEnd(ObservedEndKind::kExit, 3);
            }).exit_status, 3) << "what the parent saw outranks";
  EXPECT_EQ(end([](TraceBuilder& t) {
              t.End(0, 2000, format::EndReason::kExec);
              t.ObservedEnd(ObservedEndKind::kSignal, 11);
            }).end, End::kExec) << "it was the next program that crashed";
}

// Threads go on behind its last words until the kernel ends them.
TEST(AnalyzerTest, AnExecFailsWhereItIsToldThatItDid) {
  using End = ProcessInfo::End;
  uint64_t last_ns = 5'000'000;
  const auto end = [&last_ns](auto fill) {
    TraceBuilder trace;
    fill(trace);
    trace.Thread(1, 100, "main").At(5'000'000).Malloc(0x1010, 1).At(last_ns).Free(0x1010);
    return Analyze(trace.Build()).analysis.process.end;
  };
  EXPECT_EQ(end([](TraceBuilder& t) { t.ExecBegins(1000); }), End::kExec);
  EXPECT_EQ(end([](TraceBuilder& t) { t.ExecBegins(1000).ExecFailed(1000); }), End::kCut);
  EXPECT_EQ(end([](TraceBuilder& t) { t.ExecFailed(1000).ExecBegins(1000); }), End::kCut)
      << "in another order in the file";
  EXPECT_EQ(end([](TraceBuilder& t) { t.ExecBegins(1000).ExecBegins(2000).ExecFailed(2000); }),
            End::kExec)
      << "that of another thread did not";
  EXPECT_EQ(end([](TraceBuilder& t) { t.ExecBegins(1000).ExecFailed(1000).ExecBegins(2000); }),
            End::kExec);
  EXPECT_EQ(end([](TraceBuilder& t) { t.ExecBegins(1000).ExecFailed(1000).End(3, 6'000'000); }),
            End::kExit);
  // A handler jumped out of it.
  last_ns = 3'000'000'000;
  EXPECT_EQ(end([](TraceBuilder& t) { t.ExecBegins(1000); }), End::kCut);
}

// It sleeps before it ends by a raw exit_group, as a program of Go's may.
TEST(AnalyzerTest, AnEndThatOnlyTheParentSawIsAsLateAsItSawIt) {
  using format::ObservedEndKind;
  constexpr uint64_t kSeenNs = 12'000'000'000;
  const auto process = [](TraceBuilder::Options options, auto fill) {
    TraceBuilder trace(options);
    trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1).At(1000);
    fill(trace);
    return Analyze(trace.Build()).analysis.process;
  };
  const auto exits = [](TraceBuilder& t) { t.ObservedEnd(ObservedEndKind::kExit, 4, kSeenNs); };
  const ProcessInfo raw = process({}, exits);
  EXPECT_EQ(raw.end, ProcessInfo::End::kExit);
  EXPECT_EQ(raw.exit_status, 4);
  EXPECT_TRUE(raw.exit_unseen);
  EXPECT_EQ(raw.duration_ns, kSeenNs);
  EXPECT_FALSE(raw.is_short_run());
  const ProcessInfo told = process({}, [&](TraceBuilder& t) {
    t.End(4, 2000);
    exits(t);
  });
  EXPECT_FALSE(told.exit_unseen);
  EXPECT_EQ(told.duration_ns, 2000u) << "the trace knows it better";
  const ProcessInfo replaced = process({}, [&](TraceBuilder& t) {
    t.End(0, 1, format::EndReason::kExec);
    exits(t);
  });
  EXPECT_FALSE(replaced.exit_unseen) << "it may be the end of the program that took over";
  EXPECT_LT(replaced.duration_ns, kSeenNs);
  const ProcessInfo stopped = process({}, [&](TraceBuilder& t) {
    t.Stopped(format::RecordingStop::kMaxBytes, 0, 1500);
    exits(t);
  });
  EXPECT_LT(stopped.duration_ns, kSeenNs) << "nothing is known from behind that";
  const ProcessInfo nobody = process({.process_record = false}, exits);
  EXPECT_LT(nobody.duration_ns, TraceBuilder::Options().start_realtime_ns)
      << "since when is not known";
}

// A full disk: the process ended in order, and could not say so.
TEST(AnalyzerTest, AnEndThatCouldNotBeWrittenIsNoDeath) {
  format::StatusArea area = {};
  area.lost_end = {static_cast<uint32_t>(format::RecordingStop::kWriteFailed), ENOSPC};
  const auto trace_that = [&](bool has_end, bool was_killed, bool has_gap) {
    TraceBuilder trace;
    trace.Status(area);
    trace.Thread(1).At(1000).Malloc(0x10010, 16).Flush();
    if (has_end) trace.End(0, 2000);
    if (was_killed) trace.ObservedEnd(format::ObservedEndKind::kSignal, SIGKILL);
    if (has_gap) trace.Gap(4096);
    return Analyze(trace.Build()).analysis.coverage;
  };
  const Coverage lost = trace_that(false, false, false);
  EXPECT_THAT(lost.lost_end, testing::StartsWith("No space left on device (make room"));
  ASSERT_EQ(lost.notes.size(), 1u);
  EXPECT_EQ(lost.notes[0].text,
            "The end of the process could not be written to the trace: " + lost.lost_end + ".");
  EXPECT_FALSE(lost.events_missing);
  EXPECT_EQ(trace_that(false, false, true).damage,
            "the trace ends without an end: that could not be written; everything it had written "
            "was read");
  EXPECT_THAT(trace_that(true, false, false).notes, testing::IsEmpty()) << "an exec had failed";
  EXPECT_THAT(trace_that(false, true, true).damage, testing::HasSubstr("was killed or still runs"));
}

// The process itself lacks nothing, and what is said of its own blocks stands.
TEST(AnalyzerTest, ChildrenThatCouldNotCreateATraceAreTold) {
  format::StatusArea area = {};
  const auto coverage_of = [&area](uint32_t count, int error = ENOSPC) {
    area.untraced_children = {count, error};
    TraceBuilder trace;
    trace.Status(area);
    trace.Thread(1).At(1000).Malloc(0x10010, 16).Flush();
    trace.End(0, 2000);
    const Analysis analysis = Analyze(trace.Build()).analysis;
    EXPECT_TRUE(AllAllocationsSeen(analysis));
    EXPECT_EQ(AllRecorded(analysis.coverage), count == 0);
    EXPECT_FALSE(analysis.coverage.events_missing);
    return analysis.coverage;
  };
  const Coverage one = coverage_of(1);
  EXPECT_EQ(one.untraced_children.count, 1u);
  EXPECT_THAT(UntracedChildrenText(one),
              testing::StartsWith("1 forked child could not create a trace: No space left on "
                                  "device (make room"));
  ASSERT_EQ(one.notes.size(), 1u);
  EXPECT_THAT(one.notes[0].text,
              testing::StartsWith(UntracedChildrenText(one) + "; what they did"));
  EXPECT_THAT(UntracedChildrenText(coverage_of(2)), testing::StartsWith("2 forked children could"));
  EXPECT_EQ(UntracedChildrenText(coverage_of(1, EACCES)),
            "1 forked child could not create a trace: Permission denied (if the program became "
            "another user, start it as that user)");
  const Coverage none = coverage_of(0);
  EXPECT_EQ(UntracedChildrenText(none), "");
  EXPECT_THAT(none.notes, testing::IsEmpty());
}

// A child by vfork() in a process with a seccomp filter may have written it.
TEST(AnalyzerTest, BelievesADoubtfulEndOnlyWhereNothingFollows) {
  using End = ProcessInfo::End;
  for (const uint64_t end_ns : {2000, 1}) {
    TraceBuilder trace;
    trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1).At(1000);
    trace.End(7, end_ns, format::EndReason::kUnderscoreExit, /*doubtful=*/true);
    const Analysis analysis = Analyze(trace.Build()).analysis;
    EXPECT_EQ(analysis.process.end, end_ns == 1 ? End::kCut : End::kExit);
    EXPECT_EQ(analysis.process.exit_status, end_ns == 1 ? 0 : 7);
    const auto is_told = testing::Contains(testing::HasSubstr("vfork()"));
    if (end_ns == 1) {
      EXPECT_THAT(CoverageNotes(analysis), testing::Not(is_told));
    } else {
      EXPECT_THAT(CoverageNotes(analysis), is_told);
    }
  }
}

TEST(AnalyzerTest, RecordsBecomeModulesCountersAndNotes) {
  TraceBuilder trace;
  trace.Module(1, format::kModulePermanent | format::kModuleExecutable, 0x400000, 0x500000, 0x1000,
               "/usr/bin/app", "\xab\xcd", 0);
  trace.Module(2, 0, 0x7f0000, 0x7f8000, 0x7f0000, "/usr/lib/plugin.so", "", 500)
      .ModuleUnload(2, 900);
  // What a disk was too full for comes later, the unload perhaps first.
  trace.ModuleUnload(3, 800)
      .Module(3, 0, 0x6f0000, 0x6f8000, 0x6f0000, "/usr/lib/other.so", "", 600)
      .Module(3, 0, 0x6f0000, 0x6f8000, 0x6f0000, "/usr/lib/other.so", "", 600);
  trace.Counter("cross_checked", 5)
      .Counter("cross_checked", 50)
      .Counter("cross_check_differences", 1);
  trace.Note("One thing was strange.");
  // Some are told again.
  for (const char* file : {"/usr/lib/php/a.so", "b.so", "b.so", "/c.so", "/d/d.so", "b.so"}) {
    trace.Note(std::string(file) + " was opened with RTLD_DEEPBIND: what it allocates and frees by libc's malloc "
               "is not in this trace");
  }
  trace.Stopped(format::RecordingStop::kMaxBytes, 0, 1000);
  trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1).At(1000);
  const Analysis a = Analyze(trace.Build()).analysis;
  ASSERT_EQ(a.modules.size(), 3u);
  EXPECT_EQ(a.modules[0].path, "/usr/bin/app");
  EXPECT_EQ(a.modules[0].build_id, "\xab\xcd");
  EXPECT_EQ(a.modules[0].unload_time_ns, 0u);
  EXPECT_EQ(a.modules[1].load_time_ns, 500u);
  EXPECT_EQ(a.modules[1].unload_time_ns, 900u);
  EXPECT_EQ(a.modules[2].load_time_ns, 600u);
  EXPECT_EQ(a.modules[2].unload_time_ns, 800u);
  EXPECT_EQ(a.coverage.cross_checked, 50u);
  EXPECT_EQ(a.coverage.cross_check_differences, 1u);
  EXPECT_THAT(CoverageNotes(a), testing::Contains("One thing was strange."));
  EXPECT_THAT(CoverageNotes(a), testing::Contains(testing::HasSubstr("at the size limit")));
  EXPECT_THAT(CoverageNotes(a), testing::Contains("a.so, b.so, c.so and 1 more were opened with RTLD_DEEPBIND: what they "
                                                  "allocate and free by libc's malloc is not in this trace"));
}

// After twelve days: six digits of the seconds would be 1.0368e+06.
TEST(AnalyzerTest, SaysToTheMillisecondWhereAFlightRecorderBegins) {
  constexpr uint64_t kBegin = 1'036'800'123'000'000;
  TraceBuilder trace;
  trace.Record([&](format::RecordEncoder& record) {
    record.Begin(format::RecordTag::kWindow);
    record.Number(trace.TicksAt(kBegin));
    record.End();
  });
  trace.Thread(1, 100, "main").At(kBegin + 1000).Malloc(0x1010, 1).At(kBegin + 2000);
  const Analysis a = Analyze(trace.Build()).analysis;
  EXPECT_THAT(CoverageNotes(a), testing::Contains(testing::ContainsRegex(
                                    "newest events only .*: from 10368..\\.[0-9][0-9][0-9] s on")));
}

// Of which the library tells the first sixteen.
TEST(AnalyzerTest, AUserChangedToAndFroIsOneNote) {
  const auto notes = [](int changes) {
    TraceBuilder trace;
    for (int i = 0; i < changes; ++i) {
      trace.Record([&](format::RecordEncoder& record) {
        record.Begin(format::RecordTag::kConfined);
        record.Number(static_cast<uint64_t>(format::Confinement::kPathLost));
        record.Number(trace.TicksAt(1'000'000 * static_cast<uint64_t>(i + 1)));
        record.Bytes(i == 1 ? "chroot" : "seteuid");
        record.Number(4096);
        record.Number(8192);
        record.End();
      });
    }
    trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1);
    trace.End(0, 20'000'000);
    return CoverageNotes(Analyze(trace.Build()).analysis);
  };
  using testing::StartsWith;
  EXPECT_THAT(notes(1), testing::ElementsAre(
                            StartsWith("The program gave up rights by seteuid at 0.001 s: the trace")));
  EXPECT_THAT(notes(5),
              testing::ElementsAre(
                  StartsWith("The program gave up rights by seteuid at 0.001 s and 3 times more until "
                             "0.005 s, by chroot at 0.002 s: the trace went on")));
  EXPECT_THAT(notes(16), testing::Contains(testing::HasSubstr("at least 14 times more until 0.016 s")));
}

TEST(AnalyzerTest, RightsThatWereGivenUpHideNothingWhereTheTraceGoesOn) {
  const auto all_recorded = [](format::Confinement what, uint64_t reserve_end) {
    TraceBuilder trace;
    trace.Record([&](format::RecordEncoder& record) {
      record.Begin(format::RecordTag::kConfined);
      record.Number(static_cast<uint64_t>(what));
      record.Number(trace.TicksAt(1'000'000));
      record.Bytes("seteuid");
      record.Number(4096);
      record.Number(reserve_end);
      record.End();
    });
    trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1);
    trace.End(0, 20'000'000);
    const Coverage coverage = Analyze(trace.Build()).analysis.coverage;
    EXPECT_EQ(coverage.notes.size(), 1u);
    return AllRecorded(coverage);
  };
  EXPECT_TRUE(all_recorded(format::Confinement::kPathLost, 8192));
  EXPECT_TRUE(all_recorded(format::Confinement::kMemoryCallsOnly, 8192));
  EXPECT_FALSE(all_recorded(format::Confinement::kPathLost, 0));
  EXPECT_FALSE(all_recorded(format::Confinement::kMemoryCallsOnly, 0));
}

TEST(AnalyzerTest, SizesGoToTheirClasses) {
  TraceBuilder trace;
  auto& t = trace.Thread(1, 100, "main").At(1);
  t.Malloc(0x1010, 0).Malloc(0x1020, 1).Malloc(0x1030, 2).Malloc(0x1040, 3).Malloc(0x1050, 1024);
  t.Free(0x1050).At(2);
  const SizeHistogram sizes = Analyze(trace.Build()).analysis.sizes;
  EXPECT_EQ(sizes.allocations[0], 1u);
  EXPECT_EQ(sizes.allocations[1], 1u);
  EXPECT_EQ(sizes.allocations[2], 2u);
  EXPECT_EQ(sizes.bytes[2], 5u);
  EXPECT_EQ(sizes.allocations[11], 1u);
  EXPECT_EQ(sizes.live_blocks[11], 0u);
  EXPECT_EQ(sizes.live_bytes[2], 5u);
}

TEST(AnalyzerTest, ReportsItsProgress) {
  TraceBuilder trace;
  auto& t = trace.Thread(1, 100, "main").At(1);
  for (int i = 0; i < 1'000'000; ++i) {
    t.Malloc(0x1010, 1).Free(0x1010);
    if (i % 20'000 == 0) t.Flush();
  }
  std::vector<uint64_t> done;
  AnalyzeOptions options;
  uint64_t events = 0;
  options.progress = [&](const ReadProgress& progress) {
    EXPECT_LE(progress.done, progress.total);
    EXPECT_GE(progress.events, events);
    events = progress.events;
    done.push_back(progress.done);
  };
  Analyze(trace.Build(), options);
  EXPECT_EQ(events, 2'000'000u);
  EXPECT_GE(done.size(), 4u);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

}  // namespace
}  // namespace memtrace::report
