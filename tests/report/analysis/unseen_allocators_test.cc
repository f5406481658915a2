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

#include "absl/strings/str_cat.h"
#include "report/analysis/analyzer.h"
#include "report/analysis/coverage.h"
#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

// What the files of the modules define for others, keep to themselves, and ask others for; and what
// texts they have, where they are asked.
struct Names {
  std::vector<std::string> exported, hidden, wanted, texts = {};
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
    for (size_t i = 0; i < texts.size(); ++i) found.contains[i] = has(file->second.texts, texts[i]);
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

// These free what malloc gave out.
TEST_F(UnseenBlocksTest, WhatTheAllocatorsOwnFunctionsFreeIsToldAsNotSeen) {
  const Names jemalloc = {{"malloc", "mallocx", "dallocx", "sdallocx"}, {}, {}};
  const Names unknown = {{"malloc", "_Znwm", "sdallocx"}, {}, {}};
  const auto notes = [](const Analysis& a) { return CoverageNotes(a); };
  const auto is_told = [](const std::string& text) {
    return testing::Contains(testing::HasSubstr(text));
  };
  const Analysis a = Filled({{kApp, {{}, {}, {"malloc", "sdallocx"}}}, {kAllocator, jemalloc}});
  ASSERT_EQ(a.coverage.unseen_allocators.size(), 1u);
  EXPECT_EQ(a.coverage.unseen_allocators[0].way, UnseenAllocator::Way::kOwnNames);
  EXPECT_EQ(a.coverage.unseen_allocators[0].allocator, "jemalloc");
  EXPECT_THAT(notes(a), is_told(" is jemalloc: what is freed by its own sdallocx counts as live"));
  EXPECT_FALSE(AllRecorded(a.coverage));
  EXPECT_EQ(a.invalid_frees.of_unseen_blocks, 0u) << "it gives out none";
  EXPECT_THAT(
      notes(Filled({{kApp, {{}, {}, {"mallocx", "dallocx", "sdallocx"}}}, {kAllocator, jemalloc}})),
      is_told("is jemalloc: what is allocated by its own mallocx is not in this trace, "
              "only what is by malloc and its kin; what is freed by its own dallocx, "
              "sdallocx counts as live"));
  EXPECT_THAT(notes(Filled({{kApp, {{}, {}, {"malloc", "sdallocx"}}}, {kAllocator, unknown}})),
              is_told(" has a malloc of its own: what is freed by its own sdallocx"));
  EXPECT_THAT(
      notes(Filled({{kApp, {{}, {}, {"_Znwm", "sdallocx"}}}, {kAllocator, unknown}})),
      is_told(
          " has a malloc and an operator new of its own: what is allocated by that operator new "
          "is not in this trace, only what is by malloc and its kin; what is freed by its own"));
}

// libstdc++'s operator new calls malloc. Where it comes first jemalloc's is nobody's.
TEST_F(UnseenBlocksTest, ItIsSaidHowTheBlocksOfJemallocsOperatorNewAreSeen) {
  constexpr char kRuntime[] = "/usr/lib/libstdc++.so.6.0.30";
  const std::string map =
      absl::StrCat("7f0000000000-7f0000003000 r-xp 00000000 08:01 2    ", kRuntime, "\n");
  const auto is_said = testing::Contains(testing::HasSubstr(
      "by its own operator new is not in this trace, only what is by malloc and its kin (with "
      "libstdc++.so.6 first in LD_PRELOAD it is)"));
  const auto notes = [&](const std::string& mark, const Names& runtime) {
    return CoverageNotes(Filled({{kApp, {{}, {}, {"_Znwm"}}},
                                 {kAllocator, AllocatorWith(mark)},
                                 {kRuntime, runtime}},
                                map));
  };
  const Names runtime = {{"_Znwm", "_ZdlPv"}, {}, {"malloc"}};
  EXPECT_THAT(notes("mallocx", runtime), is_said);
  EXPECT_THAT(notes("tc_malloc", runtime), testing::Not(is_said)) << "its own would be leaks";
  EXPECT_THAT(notes("mallocx", {}), testing::Not(is_said)) << "nothing to put there";
}

// A program may ask for them weakly, and then has them only where its allocator does.
TEST_F(UnseenBlocksTest, FunctionsThatNoAllocatorHasOrNobodyCallsFreeNothing) {
  const auto found = [](const Files& files) { return Filled(files).coverage.unseen_allocators; };
  const Names app = {{}, {}, {"malloc", "sdallocx"}};
  EXPECT_TRUE(found({{kApp, app}, {kAllocator, {{"malloc"}, {}, {}}}}).empty());
  const Names jemalloc = {{"malloc", "mallocx", "sdallocx"}, {}, {}};
  EXPECT_TRUE(found({{kApp, {{}, {}, {"malloc"}}}, {kAllocator, jemalloc}}).empty());
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

constexpr char kPython[] = "/usr/bin/python3.14", kLibpython[] = "/usr/lib/libpython3.14.so.1.0";
constexpr uint64_t kByPython = 0x401000, kByLibpython = 0x601000, kByNumbers = 0x701000;

struct Mapping {
  uint64_t pc = 0;  // whose return address; 0: no stack
  uint64_t bytes = 0;
};

// A CPython that mapped this memory, and had what the map says when its recording began.
AnalyzedTrace PythonThatMapped(const std::vector<Mapping>& mappings,
                               const std::string& map_at_start = "",
                               const AnalyzeOptions& options = {}) {
  TraceBuilder trace;
  trace.Module(1, format::kModulePermanent | format::kModuleExecutable, 0x400000, 0x500000,
               0x400000, kPython);
  trace.Module(2, format::kModulePermanent | format::kModuleTracer, 0x500000, 0x600000, 0x500000,
               "/lib/libmemtrace.so");
  trace.Module(3, format::kModulePermanent, 0x600000, 0x700000, 0x600000, kLibpython);
  trace.Module(4, format::kModulePermanent, 0x700000, 0x800000, 0x700000, "/usr/lib/numbers.so");
  if (!map_at_start.empty()) trace.MemoryMap(format::MapReason::kStart, map_at_start);
  auto& thread = trace.Thread(1, 4242, "main");
  thread.At(1);
  uint32_t slot = 0;
  uint64_t address = uint64_t{1} << 41;
  for (const Mapping& mapping : mappings) {
    if (mapping.pc != 0) thread.Node(++slot, mapping.pc);
    thread.Mmap(address, mapping.bytes, mapping.pc != 0 ? slot : 0);
    address += uint64_t{1} << 32;
  }
  thread.At(2).At(900).Malloc(0x10010, 18);
  trace.End(0, 1000);
  return Analyze(trace.Build(), options);
}

// Every build since 3.13 has these. One that was stripped, and one that was not.
const Names kStripped = {{}, {}, {"malloc"}, {"mimalloc: ", "PYTHONMALLOC"}};
const Names kWithSymbols = {{"PyMem_SetAllocator"}, {"mi_heap_malloc"}, {"malloc"}};

Analysis PythonFilled(const AnalyzedTrace& trace, const Files& files) {
  Analysis filled = trace.analysis;
  FillUnseenAllocators(NamesIn(files), &filled);
  return filled;
}

constexpr uint64_t kMiB = 1 << 20;

TEST(PythonsMimallocTest, IsNotToldWhereItIsNotUsed) {
  const AnalyzedTrace trace =
      PythonThatMapped({{kByPython, kMiB}, {kByLibpython, kMiB}, {kByNumbers, 64 * kMiB}});
  for (const Names& names : {kStripped, kWithSymbols}) {
    for (const char* module : {kPython, kLibpython}) {
      const Analysis a = PythonFilled(trace, {{module, names}});
      EXPECT_TRUE(a.coverage.unseen_allocators.empty()) << module;
      EXPECT_TRUE(AllRecorded(a.coverage)) << module;
    }
  }
}

TEST(PythonsMimallocTest, IsToldWhereItIs) {
  for (const uint64_t bytes : {32 * kMiB, 1024 * kMiB}) {
    const AnalyzedTrace trace =
        PythonThatMapped({{kByPython, bytes}, {kByLibpython, bytes}, {kByPython, kMiB}});
    for (const Names& names : {kStripped, kWithSymbols}) {
      for (const char* module : {kPython, kLibpython}) {
        const Analysis a = PythonFilled(trace, {{module, names}});
        ASSERT_EQ(a.coverage.unseen_allocators.size(), 1u) << module;
        EXPECT_EQ(a.coverage.unseen_allocators[0].allocator, "mimalloc");
        EXPECT_THAT(CoverageNotes(a), testing::Contains(testing::HasSubstr(
                                          "has mimalloc inside: what it allocates with that")));
        EXPECT_FALSE(AllRecorded(a.coverage));
      }
    }
  }
}

// A part of the run, too, though the memory was mapped before it.
TEST(PythonsMimallocTest, IsToldOfAPartOfTheRun) {
  AnalyzeOptions options;
  options.range.from_ns = 500;
  const AnalyzedTrace used = PythonThatMapped({{kByPython, 1024 * kMiB}}, "", options);
  EXPECT_TRUE(used.analysis.mappings.empty());
  EXPECT_EQ(PythonFilled(used, {{kPython, kStripped}}).coverage.unseen_allocators.size(), 1u);
  const AnalyzedTrace idle = PythonThatMapped({{kByPython, kMiB}}, "", options);
  EXPECT_TRUE(PythonFilled(idle, {{kPython, kStripped}}).coverage.unseen_allocators.empty());
}

TEST(PythonsMimallocTest, IsToldWhereWhatWasMappedIsNotKnown) {
  const Files files = {{kPython, kStripped}};
  const auto may_be_used =
      testing::Contains(testing::HasSubstr("mimalloc inside, and it is not known whether it used"));
  EXPECT_THAT(CoverageNotes(PythonFilled(PythonThatMapped({{0, 64 * kMiB}}), files)), may_be_used);
  // What a child has from its parent. A reserve is a heap of an arena, unless it is larger.
  const auto with_map = [&](const std::string& line) {
    return CoverageNotes(PythonFilled(PythonThatMapped({}, line), files));
  };
  EXPECT_THAT(with_map("20000000000-20040000000 rw-p 00000000 00:00 0\n"), may_be_used);
  EXPECT_THAT(with_map("20000000000-20002000000 rw-p 00000000 00:00 0\n"), may_be_used);
  EXPECT_THAT(with_map("20000000000-20040000000 ---p 00000000 00:00 0\n"), may_be_used);
  EXPECT_THAT(with_map("7f0000021000-7f0004000000 ---p 00000000 00:00 0\n"), testing::IsEmpty());
  EXPECT_THAT(with_map("7f0000000000-7f0008000000 r--p 00000000 08:01 2    /usr/lib/big\n"),
              testing::IsEmpty());
  EXPECT_THAT(with_map("1000000-9000000 rw-p 00000000 00:00 0    [heap]\n"), testing::IsEmpty());
  AnalyzedTrace lost = PythonThatMapped({});
  lost.analysis.coverage.events_missing = true;
  EXPECT_THAT(CoverageNotes(PythonFilled(lost, files)), may_be_used);
}

TEST(PythonsMimallocTest, OfManyRunsThoseAreToldThatUseIt) {
  UnseenAllocatorsByProgram by_program(NamesIn({{kPython, kStripped}}));
  for (const uint64_t bytes : {kMiB, 1024 * kMiB, kMiB}) {
    Analysis one = PythonThatMapped({{kByPython, bytes}}).analysis;
    by_program.Fill(&one);
    EXPECT_EQ(one.coverage.unseen_allocators.size(), bytes == kMiB ? 0u : 1u);
  }
}

TEST(PythonsMimallocTest, OfOtherProgramsItIsToldAsBefore) {
  const Files files = {{kPython, {{}, {}, {"malloc"}, {"mimalloc: "}}}};
  EXPECT_EQ(PythonFilled(PythonThatMapped({}), files).coverage.unseen_allocators.size(), 1u);
}

// The arenas of a CPython since 3.10, and of one before.
TEST(PythonsPymallocTest, IsKnownByItsArenas) {
  for (const uint64_t arena : {kMiB, kMiB / 4}) {
    const AnalyzedTrace trace = PythonThatMapped({{kByPython, arena}, {kByLibpython, arena}});
    for (const Names& names : {kStripped, kWithSymbols}) {
      for (const char* module : {kPython, kLibpython}) {
        const Analysis a = PythonFilled(trace, {{module, names}});
        EXPECT_TRUE(a.coverage.pymalloc) << module;
        EXPECT_TRUE(AllRecorded(a.coverage));
      }
    }
  }
  AnalyzeOptions late;
  late.range.from_ns = 500;
  EXPECT_TRUE(PythonFilled(PythonThatMapped({{kByPython, kMiB}}, "", late), {{kPython, kStripped}})
                  .coverage.pymalloc);
}

// With PYTHONMALLOC=malloc it maps pieces of its own stack, and its libraries what they like.
TEST(PythonsPymallocTest, IsNotToldWhereNothingTellsOfIt) {
  const Files files = {{kPython, kStripped}};
  for (const auto& [pc, bytes] : std::vector<std::pair<uint64_t, uint64_t>>{
           {kByPython, kMiB / 64}, {kByPython, 64 * kMiB}, {kByNumbers, kMiB}, {0, kMiB}}) {
    EXPECT_FALSE(PythonFilled(PythonThatMapped({{pc, bytes}}), files).coverage.pymalloc) << bytes;
  }
  EXPECT_FALSE(PythonFilled(PythonThatMapped({}), files).coverage.pymalloc);
  const Files no_python = {{kPython, {{}, {}, {"malloc"}}}};
  EXPECT_FALSE(PythonFilled(PythonThatMapped({{kByPython, kMiB}}), no_python).coverage.pymalloc);
}

TEST(PythonsPymallocTest, OfManyRunsThoseAreToldThatUseIt) {
  UnseenAllocatorsByProgram by_program(NamesIn({{kPython, kStripped}}));
  for (const uint64_t bytes : {kMiB, kMiB / 64, kMiB, kMiB / 64}) {
    Analysis one = PythonThatMapped({{kByPython, bytes}}).analysis;
    by_program.Fill(&one);
    EXPECT_EQ(one.coverage.pymalloc, bytes == kMiB);
  }
}

}  // namespace
}  // namespace memtrace::report
