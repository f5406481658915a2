#include <gtest/gtest.h>

#include "report/names/symbol_notes.h"
#include "tests/report/render/render_made_up.h"

namespace memtrace::report::render {
namespace {

std::vector<std::string> Names(const SiteSymbols& symbols, StackId stack) {
  std::vector<std::string> names;
  for (const FrameId id : symbols.Stack(stack)) names.push_back(FrameName(symbols.frame(id)));
  return names;
}

TEST(SiteSymbolsTest, ExpandsInlinedFramesInnermostFirst) {
  MadeUp trace;
  const StackId stack = trace.Stack({{"inner", "a.h", 3, kApp, true}, {"outer", "a.c", 9},
                                     {"main", "a.c", 20}});
  trace.AddSite(stack, 1, 8, 1);
  const SiteSymbols& symbols = trace.symbols();
  EXPECT_EQ(Names(symbols, stack), (std::vector<std::string>{"inner", "outer", "main"}));
  const std::vector<FrameId> ids = symbols.Stack(stack);
  EXPECT_TRUE(symbols.frame(ids[0]).inlined);
  EXPECT_FALSE(symbols.frame(ids[1]).inlined);
  EXPECT_EQ(symbols.frame(ids[0]).offset, symbols.frame(ids[1]).offset);
  EXPECT_EQ(symbols.frame(ids[2]).module, "/work/app");
}

TEST(SiteSymbolsTest, AsksForEachModuleOnce) {
  MadeUp trace;
  for (int i = 0; i < 50; ++i) {
    trace.AddSite(trace.Stack({Libc("helper"), {"f", "f.c", 1}, {"main", "f.c", 9}}), 1, 8, 1);
  }
  trace.symbols();
  EXPECT_EQ(trace.symbolize_calls, 2);
}

TEST(SiteSymbolsTest, AMarkerEndsTheStackAndSaysWhy) {
  MadeUp trace;
  const StackId stack = trace.Stack({{"jitted", "j.c", 1}});
  trace.EndWithMarker(stack, format::StackMarker::kNoUnwindInfo);
  trace.AddSite(stack, 1, 8, 1);
  const SiteSymbols& symbols = trace.symbols();
  EXPECT_EQ(Names(symbols, stack),
            (std::vector<std::string>{"jitted", "[no unwind info: JIT or assembly without CFI]"}));
  EXPECT_EQ(symbols.frame(symbols.Stack(stack)[1]).role, FrameRole::kMarker);
}

TEST(SiteSymbolsTest, InstanceZeroIsThePermanentModuleAroundThePc) {
  MadeUp trace;
  const StackId stack = trace.Stack({Libc("in_libc"), {"main", "m.c", 1}});
  for (MadeUp::RawFrame& raw : trace.raw(stack)) raw.instance = format::kPermanentInstance;
  trace.AddSite(stack, 1, 8, 1);
  EXPECT_EQ(Names(trace.symbols(), stack), (std::vector<std::string>{"in_libc", "main"}));
}

TEST(SiteSymbolsTest, CodeOutsideOfEveryModuleKeepsItsAddress) {
  MadeUp trace;
  const StackId stack = trace.Stack({{"main", "m.c", 1}});
  trace.raw(stack).insert(trace.raw(stack).begin(), {0, 0x123});
  trace.raw(stack).insert(trace.raw(stack).begin(), {77, 0x456});
  trace.AddSite(stack, 1, 8, 1);
  EXPECT_EQ(Names(trace.symbols(), stack),
            (std::vector<std::string>{"0x456", "0x123", "main"}));
}

// Instance 77 was a file's, and its record is lost: it may have been the program's own.
TEST(SiteSymbolsTest, AFrameWhoseModuleIsLostMayBeTheCaller) {
  MadeUp trace;
  const StackId stack = trace.Stack({{"main", "m.c", 1}});
  trace.raw(stack).insert(trace.raw(stack).begin(), {0, 0x123});
  trace.raw(stack).insert(trace.raw(stack).begin(), {77, 0x456});
  trace.AddSite(stack, 1, 8, 1);
  const SiteSymbols& symbols = trace.symbols();
  const std::vector<FrameId> ids = symbols.Stack(stack);
  EXPECT_EQ(symbols.frame(ids[0]).role, FrameRole::kProject);
  EXPECT_EQ(symbols.frame(ids[1]).role, FrameRole::kSystem) << "code made at run time";
}

TEST(SiteSymbolsTest, AReplacedFileIsModuleAndOffsetAndSaidOnce) {
  MadeUp trace;
  trace.plugin_state = symbolizer::ModuleState::kBuildIdDiffers;
  const StackId a = trace.Stack({{"secret", "p.c", 1, kPlugin}});
  const StackId b = trace.Stack({{"secret", "p.c", 2, kPlugin}});
  trace.AddSite(a, 1, 8, 1);
  trace.AddSite(b, 1, 8, 1);
  const SiteSymbols& symbols = trace.symbols();
  EXPECT_EQ(Names(symbols, a), (std::vector<std::string>{"plugin.so+0x1000"}));
  EXPECT_EQ(Names(symbols, b), (std::vector<std::string>{"plugin.so+0x1010"}));
  ASSERT_EQ(symbols.notes().size(), 1u);
  EXPECT_NE(symbols.notes()[0].find("/work/plugin.so"), std::string::npos);
  EXPECT_NE(symbols.notes()[0].find("build-id"), std::string::npos);
}

TEST(SiteSymbolsTest, ManyThatHaveNoNamesForOneReasonAreOneNote) {
  MadeUp trace;
  trace.plugin_state = symbolizer::ModuleState::kUnreadable;
  for (uint32_t id = 4; id < 4 + 5; ++id) {
    trace.AddModule(id, "/work/plugin" + std::to_string(id) + ".dll", 0x7f2000000000 + (uint64_t{id} << 32), 0);
    trace.AddSite(trace.Stack({{"in_plugin", "p.c", 1, id}}), 1, 8, 1);
  }
  EXPECT_EQ(trace.symbols().notes(),
            std::vector<std::string>{"/work/plugin4.dll, /work/plugin5.dll, /work/plugin6.dll and 2 more cannot be "
                                     "read for names: not an ELF file"});
  MadeUp few;
  few.plugin_state = symbolizer::ModuleState::kNotFound;
  few.AddSite(few.Stack({{"in_plugin", "p.c", 1, kPlugin}}), 1, 8, 1);
  ASSERT_EQ(few.symbols().notes().size(), 1u);
  EXPECT_EQ(few.symbols().notes()[0].find("/work/plugin.so was not found: its frames"), 0u);
}

// The kernel's functions of an imported log have their names from the log.
TEST(SymbolNotesTest, WhatIsNoFileIsNotMissed) {
  SymbolNotes notes;
  ModuleInfo module;
  symbolizer::ModuleResult result;
  result.state = symbolizer::ModuleState::kNotFound;
  module.path = "[kernel]";
  notes.Add(module, result);
  notes.Finish();
  EXPECT_TRUE(notes.texts().empty());
  module.path = "/work/app";
  notes.Add(module, result);
  notes.Finish();
  EXPECT_EQ(notes.texts().size(), 1u);
}

// Of a file without a build-id nothing else tells that it was built again.
TEST(SiteSymbolsTest, AFileThatWasWrittenSinceIsSaidOnce) {
  MadeUp trace;
  trace.plugin_state = symbolizer::ModuleState::kWrittenSince;
  trace.analysis.process.start_realtime_ns = 1000;
  for (ModuleInfo& module : trace.analysis.modules) {
    if (module.path == "/work/plugin.so") module.load_time_ns = 50;
  }
  const StackId a = trace.Stack({{"secret", "p.c", 1, kPlugin}, {"main", "m.c", 1}});
  trace.AddSite(a, 1, 8, 1);
  const SiteSymbols& symbols = trace.symbols();
  EXPECT_EQ(Names(symbols, a), (std::vector<std::string>{"plugin.so+0x1000", "main"}));
  EXPECT_EQ(trace.loaded_ns.at("/work/plugin.so"), 1050);
  EXPECT_EQ(trace.loaded_ns.at("/work/app"), 1000);
  ASSERT_EQ(symbols.notes().size(), 1u);
  EXPECT_NE(symbols.notes()[0].find("/work/plugin.so was written again"), std::string::npos);
  trace.analysis.process.start_realtime_ns = 0;  // imported
  trace.symbols();
  EXPECT_EQ(trace.loaded_ns.at("/work/plugin.so"), 0);
}

TEST(SiteSymbolsTest, WhatABetterAnswerFailedByIsANote) {
  MadeUp trace;
  trace.plugin_state = symbolizer::ModuleState::kSymbolsOnly;
  trace.plugin_missed = "/work/plugin.debug: belongs to another build\x1b";
  trace.AddSite(trace.Stack({{"in_plugin", "p.c", 1, kPlugin}}), 1, 8, 1);
  EXPECT_EQ(trace.symbols().notes(),
            std::vector<std::string>{"/work/plugin.debug: belongs to another build\\x1b"});
}

TEST(SiteSymbolsTest, TheSameLineIsTheSameFrameToAReader) {
  MadeUp trace;
  const StackId a = trace.Stack({{"f", "f.c", 7}});
  const StackId b = trace.Stack({{"f", "f.c", 7}});
  const StackId c = trace.Stack({{"f", "f.c", 8}});
  for (const StackId stack : {a, b, c}) trace.AddSite(stack, 1, 8, 1);
  const SiteSymbols& symbols = trace.symbols();
  const auto identity = [&](StackId id) { return symbols.frame(symbols.Stack(id)[0]).identity; };
  EXPECT_EQ(identity(a), identity(b));
  EXPECT_NE(identity(a), identity(c));
}

}  // namespace
}  // namespace memtrace::report::render
