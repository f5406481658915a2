// docs/trace-format.md ends with a trace, byte by byte. It is the one made here,
// and the reader understands it as the document says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

std::string DocumentedTrace() {
  TraceBuilder::Options options;
  options.command = {"./a"};
  options.executable = "/a";
  TraceBuilder trace(options);
  trace.Module(1, format::kModulePermanent | format::kModuleExecutable, 0x401000, 0x402000,
               0x400000, "/a", "\x5a");
  auto& main = trace.Thread(1, 4242, "a", 1000);
  main.At(1000).Node(1, 0x401136).Node(2, 0x401150, 1).Malloc(0x4052a0, 100, 2, 4);
  main.At(2000).Free(0x4052a0).Flush(3000);
  trace.End(0, 4000);
  return trace.Build();
}

// The bytes of lines such as "0040  4d 54 42 4b      magic".
std::string BytesInDocument() {
  std::ifstream in(MEMTRACE_SOURCE_DIR "/docs/trace-format.md");
  std::string bytes, line;
  while (std::getline(in, line)) {
    size_t offset;
    int begin = 0;
    if (sscanf(line.c_str(), "%4zx  %n", &offset, &begin) != 1 || begin != 6) continue;
    EXPECT_EQ(offset, bytes.size()) << line;
    for (size_t i = begin; i + 1 < line.size() && i < 6 + 48 && line[i] != ' '; i += 3) {
      bytes += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
    }
  }
  return bytes;
}

TEST(TraceFormatDocTest, TheDocumentShowsARealTrace) {
  const std::string bytes = BytesInDocument();
  ASSERT_EQ(bytes.size(), 576u);
  EXPECT_EQ(bytes, DocumentedTrace());
}

TEST(TraceFormatDocTest, TheTraceMeansWhatTheDocumentSays) {
  const AnalyzedTrace trace = Analyze(BytesInDocument());
  const Analysis& a = trace.analysis;
  EXPECT_FALSE(a.coverage.truncated);
  EXPECT_THAT(a.process.command, testing::ElementsAre("./a"));
  EXPECT_EQ(a.process.pid, 4242u);
  EXPECT_EQ(a.process.start_realtime_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(a.process.duration_ns, 4000u);
  EXPECT_EQ(a.process.end, ProcessInfo::End::kExit);
  EXPECT_EQ(a.totals.allocations, 1u);
  EXPECT_EQ(a.totals.frees, 1u);
  EXPECT_EQ(a.totals.peak_live_bytes, 100u);
  EXPECT_EQ(a.totals.wasted_bytes, 4u);
  const Site* site = FindSite(trace, 0x401150);
  ASSERT_NE(site, nullptr);
  const StackNode& caller = trace.stacks->node(trace.stacks->node(site->stack).parent);
  EXPECT_EQ(caller.pc, 0x401136u);
  EXPECT_EQ(ModuleIndex(a.modules).Find(caller)->path, "/a");
}

}  // namespace
}  // namespace memtrace::report
