// What is told of allocators that leave no events, as the files of the modules tell of them, and of
// the frees that may be of their blocks.

#include "report/analysis/unseen_allocators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/analysis/analyzer.h"
#include "report/analysis/coverage.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

// What the files of the modules define for others, keep to themselves, and ask others for.
struct Names {
  std::vector<std::string> exported, hidden, wanted;
};
using Files = std::map<std::string, Names>;  // by path; of others nothing is known

FindModuleNames NamesIn(const Files& files) {
  return [files](const symbolizer::Module& module, std::span<const std::string_view> names,
                 std::span<const std::string_view> texts) {
    symbolizer::ModuleNames found;
    found.uses.resize(names.size());
    found.contains.resize(texts.size());
    const auto file = files.find(module.path);
    if (file == files.end()) return found;
    found.state = symbolizer::ModuleState::kSymbolsOnly;
    const auto has = [](const std::vector<std::string>& list, std::string_view name) {
      return std::ranges::find(list, name) != list.end();
    };
    for (size_t i = 0; i < names.size(); ++i) {
      found.uses[i] = {has(file->second.exported, names[i]), has(file->second.hidden, names[i]),
                       has(file->second.wanted, names[i])};
    }
    return found;
  };
}

constexpr char kApp[] = "/usr/bin/app", kAllocator[] = "/usr/lib/liballocator.so",
               kPlugin[] = "/usr/lib/plugin.so";
constexpr char kMapWithPlugin[] =
    "7f0000000000-7f0000001000 r--p 00000000 08:01 2    /usr/lib/plugin.so\n"
    "7f0000001000-7f0000003000 r-xp 00001000 08:01 2    /usr/lib/plugin.so\n";

// A program that has an allocator beside libc's, frees one block twice more than it should, and
// another within.
class UnseenBlocksTest : public ::testing::Test {
 protected:
  // The trace, with this memory map at its end, of which nobody has looked at files yet.
  static AnalyzedTrace Trace(const std::string& map_at_end = "",
                             format::AllocatorKind kind = format::AllocatorKind::kOther) {
    TraceBuilder::Options options;
    options.allocator = kind;
    TraceBuilder trace(options);
    trace.Module(1, format::kModulePermanent | format::kModuleExecutable, 0x400000, 0x500000,
                 0x400000, kApp);
    trace.Module(2, format::kModulePermanent | format::kModuleTracer, 0x500000, 0x600000, 0x500000,
                 "/lib/libmemtrace.so");
    trace.Module(3, format::kModulePermanent, 0x600000, 0x700000, 0x600000, kAllocator);
    auto& thread = trace.Thread(1, 4242, "main");
    thread.At(1).Node(1, 0x401000);
    thread.At(10).Malloc(0x10010, 18, 1).Free(0x10010).Free(0x10010).Free(0x10010);
    thread.At(20).Malloc(0x20010, 100, 1).Free(0x20018);
    thread.At(1000);
    if (!map_at_end.empty()) trace.MemoryMap(format::MapReason::kEnd, map_at_end, 1000);
    trace.End(0, 1000);
    AnalyzedTrace analyzed = Analyze(trace.Build());
    EXPECT_EQ(analyzed.analysis.invalid_frees.told, 3u);
    return analyzed;
  }

  // The same when they were looked at.
  static Analysis Filled(const Files& files, const std::string& map_at_end = "",
                         format::AllocatorKind kind = format::AllocatorKind::kOther) {
    const AnalyzedTrace trace = Trace(map_at_end, kind);
    Analysis filled = trace.analysis;
    FillUnseenAllocators(NamesIn(files), &filled);
    UnseenAllocatorsByProgram by_program(NamesIn(files));
    for (const bool again : {false, true}) {
      Analysis one = trace.analysis;
      by_program.Fill(&one);
      EXPECT_EQ(one.invalid_frees.of_unseen_blocks, filled.invalid_frees.of_unseen_blocks) << again;
      EXPECT_EQ(CoverageNotes(one), CoverageNotes(filled)) << again;
    }
    return filled;
  }

  static uint64_t TakenBack(const Files& files, const std::string& map_at_end = "",
                            format::AllocatorKind kind = format::AllocatorKind::kOther) {
    return Filled(files, map_at_end, kind).invalid_frees.of_unseen_blocks;
  }

  // What another allocator defines that is known by `mark`.
  static Names AllocatorWith(const std::string& mark) {
    return {{"malloc", "_Znwm", mark}, {}, {}};
  }
};

TEST_F(UnseenBlocksTest, AFreeThatMayBeOfOneIsNoSecondOne) {
  const auto is_noted = testing::Contains(
      testing::HasSubstr("2 frees of blocks that were freed before are not told"));
  for (const auto& [mark, taken_back] :
       std::vector<std::pair<std::string, uint64_t>>{{"mallocx", 2}, {"tc_malloc", 0}}) {
    const Analysis a =
        Filled({{kApp, {{}, {}, {"malloc", "_Znwm"}}}, {kAllocator, AllocatorWith(mark)}});
    EXPECT_EQ(a.coverage.unseen_allocators.size(), 1u) << mark;
    EXPECT_EQ(a.invalid_frees.of_unseen_blocks, taken_back) << mark;
    EXPECT_EQ(a.invalid_frees.told, 3u - taken_back) << mark;
    EXPECT_EQ(a.invalid_frees.stories.front().kind == InvalidFree::Kind::kInsideLive,
              taken_back != 0)
        << "that is one in any case";
    if (taken_back != 0) {
      EXPECT_THAT(CoverageNotes(a), is_noted);
    } else {
      EXPECT_THAT(CoverageNotes(a), testing::Not(is_noted));
    }
  }
}

// No stack and no page fault met the plugin.
TEST_F(UnseenBlocksTest, WhatAMemoryMapAloneTellsOfMayCallIt) {
  const Files files = {{kApp, {{}, {}, {"malloc"}}},
                       {kAllocator, AllocatorWith("mallocx")},
                       {kPlugin, {{}, {}, {"_Znwm"}}}};
  const Analysis a = Filled(files, kMapWithPlugin);
  EXPECT_EQ(a.invalid_frees.of_unseen_blocks, 2u);
  ASSERT_EQ(a.coverage.unseen_allocators.size(), 1u);
  EXPECT_EQ(a.coverage.unseen_allocators[0].way, UnseenAllocator::Way::kOwnNames);
  EXPECT_EQ(TakenBack(files), 0u) << "without the map nobody calls it, nor can load who would";
}

TEST_F(UnseenBlocksTest, WhatAMemoryMapAloneTellsOfMayHaveOneInside) {
  const Analysis a = Filled({{kApp, {{}, {}, {"malloc"}}},
                             {kAllocator, {{"malloc"}, {}, {}}},
                             {kPlugin, {{}, {"malloc"}, {}}}},
                            kMapWithPlugin);
  ASSERT_EQ(a.coverage.unseen_allocators.size(), 1u);
  EXPECT_EQ(a.coverage.unseen_allocators[0].way, UnseenAllocator::Way::kHidden);
  EXPECT_EQ(a.coverage.unseen_allocators[0].module, kPlugin);
  EXPECT_EQ(a.invalid_frees.of_unseen_blocks, 0u) << "it has a free of its own as well";
}

// A plugin may be gone by the end, and a process that was killed has no map of it.
TEST_F(UnseenBlocksTest, WhatMayHaveBeenLoadedMayHaveCalledIt) {
  for (const char* open : {"dlopen", "dlmopen"}) {
    const Names app = {{}, {}, {"malloc", open}};
    const Analysis a = Filled({{kApp, app}, {kAllocator, AllocatorWith("mallocx")}});
    EXPECT_EQ(a.invalid_frees.of_unseen_blocks, 2u) << open;
    EXPECT_TRUE(a.coverage.unseen_allocators.empty()) << "nobody is known to call it";
    EXPECT_EQ(TakenBack({{kApp, app}, {kAllocator, AllocatorWith("tc_malloc")}}), 0u)
        << "its operator delete leaves no event";
    EXPECT_EQ(TakenBack({{kApp, app}, {kAllocator, {{"malloc", "mallocx"}, {}, {}}}}), 0u)
        << "it has no operator new";
  }
}

TEST_F(UnseenBlocksTest, AnAllocatorThatNobodyKnowsMayHaveAnOperatorNewToo) {
  const Names unknown = {{"malloc", "_Znwm", "_ZdlPv"}, {}, {}};
  EXPECT_EQ(TakenBack({{kApp, {{}, {}, {"malloc", "_Znwm"}}}, {kAllocator, unknown}}), 2u);
  EXPECT_EQ(TakenBack({{kApp, {{}, {}, {"malloc", "dlopen"}}}, {kAllocator, unknown}}), 2u);
  EXPECT_EQ(TakenBack({{kApp, {{}, {}, {"malloc"}}}, {kAllocator, unknown}}), 0u);
  EXPECT_EQ(TakenBack({{kApp, {{"_Znwm"}, {}, {"malloc", "dlopen"}}}, {kAllocator, unknown}}), 0u)
      << "the program's own comes first";
}

// The traces of one machine are often read on another one.
TEST_F(UnseenBlocksTest, WhereTheAllocatorIsNotHereItMayBeAnyOne) {
  const Files files = {{kApp, {{}, {}, {"malloc"}}}};
  const Analysis a = Filled(files);
  EXPECT_EQ(a.coverage.modules_not_examined, 1u);
  EXPECT_EQ(a.invalid_frees.of_unseen_blocks, 2u);
  EXPECT_THAT(CoverageNotes(a), testing::Contains(testing::HasSubstr(
                                    "the allocator that the program has in place of glibc's may")));
  EXPECT_EQ(TakenBack(files, "", format::AllocatorKind::kGlibc), 0u);
  EXPECT_EQ(TakenBack({{kAllocator, AllocatorWith("mallocx")}}), 2u)
      << "nor is it known what the program calls";
}

}  // namespace
}  // namespace memtrace::report
