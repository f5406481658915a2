// The dump, line by line: what scripts rely on.

#include "report/command/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>

#include "report/command/info.h"
#include "report/findings/analysis.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

class DumpTest : public testing::Test {
 protected:
  ~DumpTest() override { unlink(path_.c_str()); }
  std::string Dump(TraceBuilder& trace, const Range& range = {}, bool quiet = true) {
    EXPECT_TRUE(trace.WriteTo(path_));
    std::ostringstream out;
    const absl::Status status = RunDump(
        {path_, {.ns = range.from_ns}, {.ns = range.to_ns}, quiet}, out);
    EXPECT_TRUE(status.ok()) << status;
    return out.str();
  }
  const std::string path_ = testing::TempDir() + "dump_test." + std::to_string(getpid()) + ".mtr";
};

TEST_F(DumpTest, ShowsEveryKindOfEvent) {
  TraceBuilder trace;
  trace.Module(1, format::kModulePermanent, 0x400000, 0x500000, 0x400000, "/usr/bin/a b");
  auto& t = trace.Thread(1, 100, "main");
  using format::AllocFunction;
  t.At(1'000'000'000).Node(1, 0x401000).Node(2, 0x402000, 1);
  t.Node(3, static_cast<uint64_t>(format::StackMarker::kNoUnwindInfo), 0, format::kNoModule);
  t.Malloc(0x1010, 100, 2, 4).At(1'000'000'000);
  t.Calloc(0x2010, 256, 1).Realloc(0x1010, 0x3010, 200, 3, 8);
  t.Wide(AllocFunction::kAlignedAlloc, 0x4000, 4096, 8192, 0, 12, format::kWideMapped);
  t.Free(0x2010).FreeWithStack(0x3010, 2).At(1'000'000'000);
  t.Mmap(0x100000, 0x1000, 1, "/etc/x\ny").Munmap(0x100000, 0x1000).MunmapFailed(0x100000, 0x1000);
  t.Mremap(0x100000, 0x1000, 0x200000, 0x2000)
      .Brk(0x500000, 0x521000)
      .HeapGrowth(0x521000, 0x542000);
  t.ArenaGrowth(0x7f0000000000, 0x21000).Shmat(0x600000, 0x1000, -1).Shmdt(0x600000);
  t.Usage(5, 1, 4096, 2).Name("renamed").At(1'000'000'000);
  EXPECT_EQ(Dump(trace), R"(1.000000000 1 frame 0x401000 stack=1 module=/usr/bin/a\040b+0x1000
1.000000000 1 frame 0x402000 stack=2 module=/usr/bin/a\040b+0x2000 caller=1
1.000000000 1 malloc 0x1010 size=100 usable=104 stack=2
1.000000000 1 calloc 0x2010 size=256 stack=1
1.000000000 1 realloc-begin 0x1010
1.000000000 1 frame - stack=3 marker=1
1.000000000 1 realloc 0x3010 size=200 usable=208 old=0x1010 stack=3
1.000000000 1 aligned_alloc 0x4000 size=4096 usable=8192 align=4096 mapped
1.000000000 1 free 0x2010
1.000000000 1 free 0x3010 stack=2
1.000000000 1 mmap 0x100000 length=4096 prot=3 flags=0x2 fd=3 offset=0 file=/etc/x\ny stack=1
1.000000000 1 munmap 0x100000 length=4096
1.000000000 1 munmap-failed 0x100000 length=4096
1.000000000 1 mremap 0x200000 length=8192 old=0x100000 old-length=4096 flags=0x1
1.000000000 1 brk 0x521000 old=0x500000
1.000000000 1 heap 0x542000 old=0x521000
1.000000000 1 arena 0x7f0000000000 bytes=135168
1.000000000 1 shmat 0x600000 length=4096 shmid=-1 flags=0x0
1.000000000 1 shmdt 0x600000
1.000000000 1 usage - minor=5 major=1 rss=4096 peak-rss=4096 tool-minor=2 voluntary=0 involuntary=0
1.000000000 1 thread-name - name=renamed
)");
}

TEST_F(DumpTest, PutsTheThreadsInOrder) {
  TraceBuilder trace;
  auto& a = trace.Thread(1);
  auto& b = trace.Thread(2);
  a.At(1000).Malloc(0x1010, 1).At(1000);
  b.At(2000).Free(0x1010).At(2000);
  a.At(3000).Malloc(0x1010, 2).At(3000);
  b.Flush();
  a.Flush();
  EXPECT_EQ(Dump(trace), R"(0.000001000 1 malloc 0x1010 size=1
0.000002000 2 free 0x1010
0.000003000 1 malloc 0x1010 size=2
)");
}

TEST_F(DumpTest, ARangeShowsItsEventsOnly) {
  TraceBuilder trace;
  auto& a = trace.Thread(1);
  for (int i = 1; i <= 5; ++i) a.At(i * 1000).Malloc(0x1000 * i, i).At(i * 1000);
  EXPECT_EQ(Dump(trace, {2000, 3000}), R"(0.000002000 1 malloc 0x2000 size=2
0.000003000 1 malloc 0x3000 size=3
)");
}

TEST_F(DumpTest, LinesAboutTheTraceBeginWithAHash) {
  TraceBuilder trace;
  trace.Module(1, format::kModulePermanent, 0x400000, 0x500000, 0x400000, "/usr/bin/app", "\xab");
  trace.Thread(1, 100, "main").At(1000).Free(0x10).At(1000);
  EXPECT_EQ(Dump(trace, {}, false), R"(# memtrace dump 1: TIME THREAD EVENT ADDRESS key=value...
# process 4242 ./app --fast
# thread 1 tid=100 name=main
# module 1 0x400000-0x500000 bias=0x400000 build-id=ab /usr/bin/app
0.000001000 1 free 0x10
)");
}

TEST_F(DumpTest, InfoTellsWhatWasTracedAndWhatIsMissing) {
  TraceBuilder trace;
  auto& a = trace.Thread(1, 100, "main");
  a.At(1000).Malloc(0x1010, 100).Free(0x2020).Flush();
  a.Dropped(3).At(2000).Malloc(0x2010, 100).Flush();
  trace.Counter("tool_memory_bytes", 2 << 20).End(1, 5000);
  ASSERT_TRUE(trace.WriteTo(path_));
  std::ostringstream out;
  ASSERT_TRUE(RunInfo({path_}, out).ok());
  for (const char* line :
       {"command                ./app --fast\n", "end                    exit 1\n",
        "events                 3\n", "dropped events         3\n", "unknown frees          1\n",
        "memory                 2.00 MiB\n",
        "format                 version 1, raw, library 0.1.0\n", "bytes an event         "}) {
    EXPECT_THAT(out.str(), testing::HasSubstr(line));
  }
}

TEST_F(DumpTest, OfAnImportedLogInfoTellsNoCostOfTheLibrary) {
  for (const bool imported : {false, true}) {
    TraceBuilder::Options options;
    if (imported) options.start_realtime_ns = 0;
    TraceBuilder trace(options);
    trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 100);
    trace.Counter("import_lines", 5).End(0, 5000);
    ASSERT_TRUE(trace.WriteTo(path_));
    std::ostringstream out;
    ASSERT_TRUE(RunInfo({path_}, out).ok());
    const auto of_the_library =
        testing::AllOf(testing::HasSubstr("the tool's own cost"), testing::HasSubstr("minor faults"),
                       testing::HasSubstr("counters of the library\n"));
    const auto of_the_import = testing::AllOf(
        testing::Not(testing::HasSubstr("own cost")),
        testing::Not(testing::HasSubstr("minor faults")),
        testing::HasSubstr("counters of the import\n"));
    if (imported) {
      EXPECT_THAT(out.str(), of_the_import);
    } else {
      EXPECT_THAT(out.str(), of_the_library);
    }
  }
}

TEST_F(DumpTest, InfoShowsTheStacksThatLibunwindDidNotConfirm) {
  TraceBuilder trace;
  trace.Module(1, format::kModulePermanent, 0x400000, 0x500000, 0x400000, "/usr/bin/app");
  trace.Module(2, 0, 0x700000, 0x710000, 0x700000, "/old.so", "", 500).ModuleUnload(2, 900);
  trace.Module(3, 0, 0x700000, 0x710000, 0x700000, "/new.so", "", 1000);
  trace.Thread(1, 100, "main").At(1000).Malloc(0x1010, 1).At(9000);
  trace.Record([&](format::RecordEncoder& r) {
    r.Begin(format::RecordTag::kCrossCheck);
    for (const uint64_t n : {uint64_t{1}, uint64_t{1}, trace.TicksAt(2000), uint64_t{0},
                             uint64_t{0x400010}, uint64_t{0x7ff000}, uint64_t{1}, uint64_t{1},
                             uint64_t{1}, uint64_t{8}, uint64_t{2}, uint64_t{3}}) {
      r.Number(n);
    }
    for (const uint64_t n : {2, 0x400010, 0, 0x400020, 0}) r.Number(n);
    for (const uint64_t n : {3, 0x400010, 0x7ff000, 0, 0x700030, 0x7ff100, 0, 0x9, 0x7ff200, 1}) {
      r.Number(n);
    }
    r.End();
    // What a hostile trace may say.
    r.Begin(format::RecordTag::kCrossCheck);
    for (int i = 0; i < 20; ++i) r.Number(UINT64_MAX);
    r.End();
  });
  trace.Counter("cross_checked", 10).Counter("cross_check_differences", 1).End(0, 10000);
  ASSERT_TRUE(trace.WriteTo(path_));
  std::ostringstream out;
  ASSERT_TRUE(RunInfo({path_}, out).ok());
  EXPECT_THAT(out.str(), testing::HasSubstr("cross-checked stacks   10, 1 differ\n"));
  EXPECT_THAT(out.str(), testing::HasSubstr(R"(
stacks that libunwind did not confirm
  different: from frame 1 on, found by the memo, thread 1, 0.000002 s
    called from pc 0x400010, sp 0x7ff000; frames: 2, libunwind 3
    #0   both      /usr/bin/app+0x10
    #1   memtrace  /usr/bin/app+0x20
    #1   libunwind /new.so+0x30, sp 0x7ff100
    #2   memtrace  [no unwind info]
    #2   libunwind 0x9 (guessed), sp 0x7ff200
    #3   libunwind [libunwind: error 8]
)"));
}

TEST_F(DumpTest, InfoNamesTheCodeAtWhichMarkedStacksEnd) {
  TraceBuilder trace;
  trace.Module(1, format::kModulePermanent, 0x400000, 0x500000, 0x400000, "/usr/bin/app");
  auto& a = trace.Thread(1, 100, "main");
  a.Node(1, static_cast<uint64_t>(format::StackMarker::kNoUnwindInfo), 0, format::kNoModule)
      .Node(2, 0x400020, 1)
      .Node(3, 0x400030, 2)
      .At(1000)
      .Malloc(0x1010, 1, 3)
      .Malloc(0x2010, 1, 2)
      .At(2000);
  trace.End(0, 3000);
  ASSERT_TRUE(trace.WriteTo(path_));
  std::ostringstream out;
  ASSERT_TRUE(RunInfo({path_}, out).ok());
  EXPECT_THAT(out.str(), testing::HasSubstr(R"(
where marked stacks end (allocations)
  no unwind info         2, at 1 places
    2                    /usr/bin/app+0x20
)"));
}

}  // namespace
}  // namespace memtrace::report
