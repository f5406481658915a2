// The text of a report on several traces: what it says of them together.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/tree/trace_set.h"
#include "report/tree/tree_view.h"
#include "tests/report/trace_builder.h"
#include "tests/temp_dir.h"

namespace memtrace::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TreeTextTest : public ::testing::Test {
 protected:
  void Write(TraceBuilder& trace) {
    paths_.push_back(directory_ / absl::StrCat(paths_.size(), ".mtr"));
    ASSERT_TRUE(trace.WriteTo(paths_.back()));
  }
  TraceBuilder::Options Another() {
    TraceBuilder::Options options;
    options.trace_id = ++trace_id_;
    options.pid = 100 + static_cast<uint32_t>(trace_id_);
    return options;
  }
  // The summary, each of its lines whole.
  std::string Summary(const TreeOptions& how = {},
                      const std::function<void(TreeAnalysis*)>& change = {}) {
    return Text({TreeTable::kSummary}, {}, how, change);
  }
  std::string Text(const std::vector<TreeTable>& tables, const render::FrameFilter& frames,
                   const TreeOptions& how = {},
                   const std::function<void(TreeAnalysis*)>& change = {}) {
    const auto set = FindTraces(paths_);
    EXPECT_TRUE(set.ok()) << set.status();
    TreeAnalysis tree = AnalyzeTree(*set, [](double) {}, {}, how);
    if (change) change(&tree);
    const auto view = TreeView::Create(
        tree,
        [this](const symbolizer::Module&, std::span<const symbolizer::Address> asked) {
          symbolizer::ModuleResult result;
          result.state = names_.empty() ? symbolizer::ModuleState::kNotFound
                                        : symbolizer::ModuleState::kSymbolsOnly;
          for (const symbolizer::Address& address : asked) {
            std::vector<symbolizer::Frame>& frames = result.frames.emplace_back();
            const auto name = names_.find(address.offset);
            if (name != names_.end()) frames.push_back({.function = name->second});
          }
          return result;
        },
        [](double) {}, "", frames);
    EXPECT_TRUE(view.ok()) << view.status();
    TreeTextOptions options;
    options.text.style.width = 1000;
    options.tables = tables;
    return RenderTreeText(*view, options);
  }

  TempDir directory_;
  std::vector<std::string> paths_;
  std::map<uint64_t, std::string> names_;  // of functions, by the offset in their module
  uint64_t trace_id_ = 0;
};

TEST_F(TreeTextTest, HowAnImportedLogEndedIsNotKnown) {
  TraceBuilder::Options imported = Another();
  imported.start_realtime_ns = 0;
  TraceBuilder log(imported), program(Another());
  for (TraceBuilder* trace : {&log, &program}) {
    trace->Thread(1, 100, "main").At(1000).Malloc(0x1010, 1);
    trace->End(0, 2000);
    Write(*trace);
  }
  EXPECT_THAT(Summary(), HasSubstr(" 1 with exit status 0, 1 imported log, which does not tell\n"));
}

// A filter chooses among the sites: each table that has other figures says so, also by itself.
TEST_F(TreeTextTest, FiguresThatAreOfAllSaySoWithoutTheSummary) {
  TraceBuilder program(Another());
  program.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1);
  program.End(0, 2000);
  Write(program);
  const auto of_all = HasSubstr("Only       sites that match /x/, where sites are listed; the other "
                                "figures are of all\n");
  const render::FrameFilter x = {.match = "x"};
  EXPECT_THAT(Text({TreeTable::kSummary}, x), of_all);
  EXPECT_THAT(Text({TreeTable::kExecutables}, x), of_all);
  EXPECT_THAT(Text({TreeTable::kProcesses, TreeTable::kSites}, x), of_all);
  EXPECT_THAT(Text({TreeTable::kLeaks, TreeTable::kSites}, x), Not(of_all)) << "none is of all";
  EXPECT_THAT(Text({TreeTable::kExecutables}, {}), Not(HasSubstr("Only")));
  const std::string both = Text({TreeTable::kSummary, TreeTable::kExecutables}, x);
  EXPECT_EQ(both.find("Only "), both.rfind("Only ")) << "once";
}

TEST_F(TreeTextTest, WhatTheRuntimeKeepsIsNoLossOfThePrograms) {
  names_ = {{0x100, "main"}, {0x200, "_dl_allocate_tls"}, {0x300, "Make"}};
  for (int i = 0; i < 2; ++i) {
    TraceBuilder trace(Another());
    trace.Module(1, format::kModulePermanent, 0x400000, 0x500000, 0x400000, "/opt/app");
    ThreadScript& main = trace.Thread(1, 100, "main").At(1000);
    main.Calloc(0x1010, 304, main.Stack({0x400100, 0x400200}));
    main.Malloc(0x2010, 100, main.Stack({0x400100, 0x400300}));
    trace.End(0, 2000);
    Write(trace);
  }
  // As if a scan had found all that is live to be lost.
  const auto lost = [&](LeakKind kind) {
    return Summary({}, [&](TreeAnalysis* tree) {
      for (const std::string& path : paths_) {
        auto read = AnalyzeTrace(path, {});
        ASSERT_TRUE(read.ok()) << read.status();
        LeakScan scan;
        scan.number = 1;
        scan.state = LeakScan::State::kDone;
        for (const Site& site : read->analysis.sites) {
          scan.records.push_back({.kind = kind, .stack = site.stack, .function = site.function,
                                  .bytes = site.live_bytes, .blocks = site.live_blocks});
        }
        read->analysis.leak_scans = {scan};
        tree->sites.Add(*read);
      }
      tree->scanned = 2;
      tree->leaks[static_cast<size_t>(kind)] = {808, 4};
    });
  };
  EXPECT_THAT(lost(LeakKind::kPossible),
              HasSubstr("200 bytes in 2 blocks possibly lost in 2 traces; 608 bytes that look "
                        "possibly lost are the runtime's own\n"));
  EXPECT_THAT(lost(LeakKind::kDefinite), Not(HasSubstr("runtime's own")));
  names_[0x200] = "AllocateTables";
  EXPECT_THAT(lost(LeakKind::kPossible),
              HasSubstr("808 bytes in 4 blocks possibly lost in 2 traces\n"));
}

TEST_F(TreeTextTest, AProcessThatWasKilledBeforeItWroteWhoItIsIsNoLog) {
  TraceBuilder::Options killed = Another();
  killed.process_record = false;
  TraceBuilder first(killed), program(Another());
  first.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1);
  Write(first);
  program.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1);
  program.End(0, 2000);
  Write(program);
  const std::string text = Summary();
  EXPECT_THAT(text, HasSubstr(" 1 with exit status 0, 1 without an end in the trace: killed, or "
                              "still running\n"));
  EXPECT_THAT(text, HasSubstr("Started    2023-11-14 ")) << "not in 1970";
}

TEST_F(TreeTextTest, AReadingThatIsStoppedHasTheTracesThatItReadWhole) {
  for (int i = 0; i < 4; ++i) {
    TraceBuilder trace(Another());
    trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 10);
    trace.End(0, 2000);
    Write(trace);
  }
  // Asked before and behind each of the small traces.
  for (const auto& [asked, told] :
       {std::pair(3, "this is of the first trace; 3 files were not read"),
        std::pair(4, "this is of the first trace; 3 files were not read"),
        std::pair(7, "this is of the first 3 traces; 1 file was not read")}) {
    int left = asked;
    const std::string text = Summary({.stop = [&] { return --left <= 0; }});
    EXPECT_THAT(text, HasSubstr(absl::StrCat("! the reading was interrupted: ", told, "\n")));
  }
  int left = 9;
  EXPECT_THAT(Summary({.stop = [&] { return --left <= 0; }}),
              testing::Not(HasSubstr("interrupted")));
}

// Workers that give up the same rights do so at times of their own.
TEST_F(TreeTextTest, NotesThatDifferInTheirTimesAreOne) {
  const auto worker = [this](uint64_t at_ns, const char* call) {
    TraceBuilder trace(Another());
    trace.Record([&](format::RecordEncoder& record) {
      record.Begin(format::RecordTag::kConfined);
      record.Number(static_cast<uint64_t>(format::Confinement::kPathLost));
      record.Number(trace.TicksAt(at_ns));
      record.Bytes(call);
      record.Number(4096);
      record.Number(8192);
      record.End();
    });
    trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1);
    trace.End(0, 20'000'000);
    Write(trace);
  };
  worker(2'000'000, "setuid");
  EXPECT_THAT(Summary(), HasSubstr("0.mtr: The program gave up rights by setuid at 0.002 s: the trace went on"));
  worker(5'000'000, "setuid");
  worker(7'000'000, "setuid");
  worker(9'000'000, "chroot");
  const std::string text = Summary();
  EXPECT_THAT(text, HasSubstr(" 3 traces: The program gave up rights by setuid: the trace went on in the part"));
  EXPECT_THAT(text, HasSubstr("3.mtr: The program gave up rights by chroot at 0.009 s: the trace went on"));
  EXPECT_THAT(text, testing::Not(HasSubstr("setuid at")));
}

// A block that was allocated meanwhile may be lost, and no scan looks.
TEST_F(TreeTextTest, WhatWasAllocatedWhileTheRecordingWasStoppedIsTold) {
  const auto worker = [this](uint32_t allocations) {
    TraceBuilder trace(Another());
    auto& main = trace.Thread(1, 100, "main").At(1000);
    for (uint32_t i = 0; i < allocations; ++i) {
      main.Malloc(0x1010 + i * 64, 10, format::kStoppedSlot);
    }
    trace.End(0, 20'000'000);
    Write(trace);
  };
  worker(2);
  const std::string one = Summary();
  EXPECT_THAT(one, HasSubstr("0.mtr: recording stopped by the program 1 time for "));
  EXPECT_THAT(one, HasSubstr(": 2 allocations then are in no figure\n"));
  worker(3);
  EXPECT_THAT(Summary(),
              HasSubstr(" 2 traces: recording stopped by the program (memtrace_stop): what "
                        "it allocated then is in no figure\n"));
  Summary({}, [](TreeAnalysis* tree) { EXPECT_EQ(tree->not_all_recorded, 2u); });
}

TEST(TraceSetTest, ATraceThatIsStillWrittenIsNotJustMissing) {
  TempDir directory;
  const std::string spool = directory / ".b.mtr.spool.Ab0Cd1";
  ASSERT_TRUE(std::filesystem::create_directory(spool));
  std::ofstream(spool + "/RUN") << "7\n/x/b.mtr\n";
  std::ofstream(directory / "a.mtr") << "x";
  const auto message = [&](const std::string& name) {
    return std::string(FindTraces({directory / "a.mtr", directory / name}).status().message());
  };
  EXPECT_THAT(message("b.mtr"),
              HasSubstr(absl::StrCat("b.mtr: No such file or directory; the run that writes it ",
                                     "goes on, or was interrupted: memtrace leaks 7 ")));
  EXPECT_THAT(message("c.mtr"), testing::EndsWith("c.mtr: No such file or directory"));
}

}  // namespace
}  // namespace memtrace::report
