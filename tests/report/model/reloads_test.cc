// A library that comes again: its call sites are those that it had.

#include "report/model/reloads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "report/viewers/viewers.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"
#include "tests/temp_dir.h"

namespace memtrace::report {
namespace {

constexpr char kBuildId[] = "0123456789abcdefghij";

// A plugin that is loaded `loads` times, each at another address, and leaks a block each.
std::string Plugin(uint32_t loads, std::string_view build_id, std::string_view last_path = "/lib/p.so") {
  TraceBuilder trace;
  auto& main = trace.Thread(1, 100, "main");
  main.Node(1, 0x401000);
  for (uint32_t i = 1; i <= loads; ++i) {
    const uint64_t bias = 0x7f0000000000 + i * 0x100000;
    trace.Module(i, 0, bias, bias + 0x5000, bias, i == loads ? last_path : "/lib/p.so", build_id, i * 1000);
    main.At(i * 1000).Node(2, bias + 0x1234, 1, i).Malloc(0x10010 + 0x1000 * i, 100, 2).At(i * 1000 + 10);
    trace.ModuleUnload(i, i * 1000 + 20);
  }
  trace.End(0, 1'000'000);
  return trace.Build();
}

TEST(ReloadsTest, ASiteOfALibraryThatComesAgainIsOneSite) {
  const AnalyzedTrace trace = Analyze(Plugin(40, kBuildId));
  ASSERT_EQ(trace.analysis.sites.size(), 1u);
  EXPECT_EQ(trace.analysis.sites[0].live_blocks, 40u);
  const StackNode& node = trace.stacks->node(trace.analysis.sites[0].stack);
  EXPECT_EQ(node.instance, 1u);
  EXPECT_EQ(node.pc, 0x7f0000100000u + 0x1234) << "the address in the first instance";
  EXPECT_EQ(trace.analysis.modules.size(), 40u) << "each load is told";
}

// A viewer is given the plugin's frames of every load, not only of the first.
TEST(ReloadsTest, AnEventStreamHasItsFramesToo) {
  TempDir directory;
  const std::string path = directory / "plugin.mtr";
  std::ofstream(path, std::ios::binary) << Plugin(3, kBuildId);
  const auto trace = AnalyzeTrace(path, {});
  ASSERT_TRUE(trace.ok()) << trace.status();
  const SiteSymbols symbols(trace->analysis, *trace->stacks,
                            [](const symbolizer::Module&, std::span<const symbolizer::Address> addresses) {
                              symbolizer::ModuleResult result;
                              result.frames.resize(addresses.size());
                              for (auto& frames : result.frames) frames = {{.function = "In"}};
                              return result;
                            });
  const auto view = render::ReportView::Create(trace->analysis, symbols, "");
  ASSERT_TRUE(view.ok());
  words::StringSink out;
  ASSERT_TRUE(viewers::RenderHeaptrack(*view, path, trace->stacks.get(), out).ok());
  EXPECT_THAT(out.text(), testing::ContainsRegex("\na 64 2\n\\+ 0\n(c [0-9a-f]+\n)?\\+ 0\n(c [0-9a-f]+\n)?\\+ 0\n"))
      << "one kind of allocation, whose stack has two places\n" << out.text();
}

TEST(ReloadsTest, AnotherFileIsAnother) {
  EXPECT_EQ(Analyze(Plugin(3, "")).analysis.sites.size(), 3u) << "it may have been compiled again";
  EXPECT_EQ(Analyze(Plugin(3, kBuildId, "/lib/q.so")).analysis.sites.size(), 2u);
}

TEST(ReloadsTest, WhatIsOfNoModuleStaysAsItIs) {
  std::vector<ModuleRecord> modules(3);
  modules[0].info = {.id = ModuleId{5}, .start = 0x1000, .end = 0x2000, .bias = 0x1000, .path = "/p", .build_id = "x"};
  modules[1].info = {.id = ModuleId{7}, .start = 0x9000, .end = 0xa000, .bias = 0x9000, .path = "/p", .build_id = "x"};
  modules[2].info = modules[1].info;  // a fork child tells its modules again
  const Reloads reloads(modules);
  EXPECT_TRUE(reloads.any());
  EXPECT_EQ(reloads.First(format::NodeWord(0x9123, 7)), format::NodeWord(0x1123, 5));
  for (const uint64_t word : {format::NodeWord(0x1123, 5), format::NodeWord(0x9123, 6),
                              format::NodeWord(0x9123, 0), format::NodeWord(1, format::kNoModule),
                              format::NodeWord(0x9123, 60000)}) {
    EXPECT_EQ(reloads.First(word), word);
  }
  EXPECT_FALSE(Reloads(std::span(modules).first(1)).any());
}

}  // namespace
}  // namespace memtrace::report
