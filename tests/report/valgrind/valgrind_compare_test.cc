// Two tools' leaks side by side.

#include "report/leak/leak_kinds.h"
#include "report/valgrind/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "report/render/valgrind_losses.h"
#include "report/valgrind/render_comparison.h"
#include "report/valgrind/valgrind_run.h"
#include "report/words/escape.h"
#include "tests/report/valgrind/valgrind_made_up.h"

namespace memtrace::report::valgrind {
namespace {

using render::Loss;
using render::LossFrame;
using render::LossList;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Both sides of a comparison, written down loss by loss.
class CompareTest : public testing::Test {
 protected:
  CompareTest() {
    scan_.state = LeakScan::State::kDone;
    here_.scan = &scan_;
    there_.protocol = 4;
    there_.shown = LeakKindSet::OfScans();
    there_.duration_ns = 404'000'000;
    analysis_.process.end = ProcessInfo::End::kExit;
    analysis_.process.duration_ns = 4'000'000;
  }

  static Loss Make(LeakKind kind, uint64_t bytes, uint64_t blocks, std::vector<LossFrame> frames,
                   bool cut = false) {
    Loss loss;
    loss.kind = kind;
    loss.bytes = bytes;
    loss.blocks = blocks;
    loss.cut = cut;
    loss.stack = {{0x1, "/usr/lib/libmemtrace.so", "malloc", "", "", 0}};
    loss.stack.insert(loss.stack.end(), frames.begin(), frames.end());
    return loss;
  }
  static LossFrame At(const std::string& function, const std::string& file, uint32_t line,
                      const std::string& object = "/work/app") {
    return {0x1000 + line, object, function, "/src", file, line};
  }
  // Of a stripped file, which here is loaded anywhere, and there where Valgrind puts it.
  static LossFrame Nameless(uint64_t offset, const std::string& object = "/work/app") {
    return {.ip = 0x55d0'1c3f'2000 + offset - 1, .object = object, .offset = offset};
  }
  static LossFrame NamelessThere(uint64_t offset, const std::string& object = "/work/app") {
    return {.ip = 0x108'000 + offset - 1, .object = object};
  }
  Comparison Compared() { return Compare(analysis_, here_, there_, allocated_); }
  ComparedLeak Only() {
    const Comparison comparison = Compared();
    EXPECT_EQ(comparison.leaks.size(), 1u);
    return comparison.leaks.empty() ? ComparedLeak() : comparison.leaks[0];
  }

  const std::vector<LossFrame> stack_ = {At("f", "a.c", 1), At("g", "a.c", 2), At("main", "a.c", 3)};
  Analysis analysis_;
  LeakScan scan_;
  LossList here_;
  ValgrindRun there_;
  std::vector<Loss> allocated_;
};

TEST_F(CompareTest, TheSameStackAndAmountAgree) {
  here_.losses = {Make(LeakKind::kDefinite, 10, 2, stack_), Make(LeakKind::kPossible, 5, 1, stack_)};
  there_.losses = {Make(LeakKind::kPossible, 5, 1, stack_), Make(LeakKind::kDefinite, 10, 2, stack_)};
  const ComparedLeak leak = Only();
  EXPECT_EQ(leak.verdict, Verdict::kAgree);
  EXPECT_EQ(leak.stage, MatchStage::kLines);
  EXPECT_THAT(leak.reasons, IsEmpty());
  EXPECT_EQ(Compared().differences(), 0u);
}

TEST_F(CompareTest, AmountsAndKindsThatDifferAreToldApart) {
  here_.losses = {Make(LeakKind::kReachable, 10, 2, stack_)};
  there_.losses = {Make(LeakKind::kDefinite, 10, 2, stack_)};
  EXPECT_EQ(Only().verdict, Verdict::kKindDiffers);
  EXPECT_THAT(Only().reasons, Contains(HasSubstr("stale")));
  there_.losses = {Make(LeakKind::kReachable, 11, 2, stack_)};
  EXPECT_EQ(Only().verdict, Verdict::kAmountDiffers);
  EXPECT_EQ(Compared().differences(), 1u);
}

// Of ruby's pages half stay at its exit, those with the higher addresses.
TEST_F(CompareTest, WhatAMappingKeepsMayDependOnTheOrderOfAddresses) {
  here_.losses = {Make(LeakKind::kReachable, 10, 2, stack_)};
  there_.losses = {Make(LeakKind::kDefinite, 10, 2, stack_)};
  EXPECT_THAT(Only().reasons, Not(Contains(HasSubstr("mapped"))));
  here_.losses[0].kept_by_mapping = true;
  EXPECT_THAT(Only().reasons, Contains(testing::AllOf(HasSubstr("stale"),
                                                      HasSubstr("memory that the program mapped"),
                                                      HasSubstr("setarch -L memtrace run"))));
  EXPECT_FALSE(Only().expected);
  there_.losses = {Make(LeakKind::kReachable, 10, 2, stack_)};
  EXPECT_THAT(Only().reasons, IsEmpty());
}

TEST_F(CompareTest, WhatIsOnlyPossiblyLostThereMayBeHitByANumber) {
  here_.losses = {Make(LeakKind::kDefinite, 1 << 20, 1, stack_)};
  there_.losses = {Make(LeakKind::kPossible, 1 << 20, 1, stack_)};
  EXPECT_EQ(Only().verdict, Verdict::kKindDiffers);
  EXPECT_FALSE(Only().expected);
  EXPECT_THAT(Only().reasons, Contains(HasSubstr("--aspace-minaddr=0x100000000")));
  there_.losses = {Make(LeakKind::kReachable, 1 << 20, 1, stack_)};
  EXPECT_THAT(Only().reasons, Not(Contains(HasSubstr("--aspace-minaddr"))));
}

TEST_F(CompareTest, LinesThatMovedArePairedByFunctions) {
  here_.losses = {Make(LeakKind::kDefinite, 10, 2, stack_)};
  there_.losses = {Make(LeakKind::kDefinite, 10, 2,
                        {At("f", "a.c", 11), At("g", "a.c", 12), At("main", "a.c", 13)})};
  EXPECT_EQ(Only().verdict, Verdict::kAgree);
  EXPECT_EQ(Only().stage, MatchStage::kFunctions);
}

// clang -O2 writes DWARF 5, of which Valgrind 3.19 does not read what was inlined: it has the line of
// the innermost with the name of the outermost.
TEST_F(CompareTest, WhereInlinedFunctionsAreNotKnownCallsArePaired) {
  const auto inlined = [](LossFrame frame, uint64_t ip) {
    frame.ip = ip;
    return frame;
  };
  const LossFrame f = inlined(At("f", "a.c", 1), 0x1100), g = inlined(At("g", "a.c", 2), 0x1100);
  const LossFrame h = inlined(At("h", "b.c", 7), 0x1200);
  here_.losses = {Make(LeakKind::kDefinite, 10, 1, {f, g, h, inlined(At("main", "a.c", 3), 0x1200)}),
                  Make(LeakKind::kDefinite, 7, 1, {f, g, inlined(At("main", "a.c", 4), 0x1300)})};
  there_.losses = {
      Make(LeakKind::kDefinite, 10, 1, {inlined(At("g", "a.c", 1), 0x21), inlined(At("main", "b.c", 7), 0x22)}),
      Make(LeakKind::kDefinite, 7, 1, {inlined(At("g", "a.c", 1), 0x21), inlined(At("main", "a.c", 4), 0x23)})};
  const Comparison comparison = Compared();
  ASSERT_EQ(comparison.leaks.size(), 2u);
  for (const ComparedLeak& leak : comparison.leaks) {
    EXPECT_EQ(leak.verdict, Verdict::kAgree);
    EXPECT_EQ(leak.stage, MatchStage::kCalls);
  }
  there_.losses[0].stack[2].line = 8;
  EXPECT_EQ(Compared().differences(), 2u);
}

// The program of a Fortran source is MAIN__ for the linker, and "x" in its debug information.
TEST_F(CompareTest, WhereNamesOfFunctionsDifferFilesAndLinesArePaired) {
  here_.losses = {Make(LeakKind::kDefinite, 10, 1,
                       {At("d_lost", "f.f90", 11), At("x", "f.f90", 36), At("main", "f.f90", 40)})};
  there_.losses = {Make(LeakKind::kDefinite, 10, 1,
                        {At("__m_MOD_d_lost", "f.f90", 11), At("MAIN__", "f.f90", 36), At("main", "f.f90", 40)})};
  EXPECT_EQ(Only().verdict, Verdict::kAgree);
  EXPECT_EQ(Only().stage, MatchStage::kPlaces);
  there_.losses[0].stack[2].line = 37;
  EXPECT_EQ(Compared().differences(), 2u);
}

// The loader calls constructors; where the kernel started it Valgrind has no name.
TEST_F(CompareTest, StacksOfConstructorsEndInTheLoader) {
  const std::string glib = "/usr/lib/libglib-2.0.so.0", loader = "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
  const LossFrame made = At("g_quark_init", "", 0, glib), init = At("call_init", "dl-init.c", 70, loader);
  here_.losses = {Make(LeakKind::kReachable, 10, 1, {made, init, At("_dl_start_user", "", 0, loader)})};
  there_.losses = {Make(LeakKind::kReachable, 10, 1, {made, init, {0x11f7, loader, "", "", "", 0}})};
  EXPECT_EQ(Only().verdict, Verdict::kAgree);
  EXPECT_EQ(Only().stage, MatchStage::kLines);
  here_.losses.clear();
  there_.losses[0].cut = true;  // as far as Valgrind knows
  EXPECT_THAT(Only().reasons, Not(Contains(HasSubstr("not complete"))));
  here_.losses = {Make(LeakKind::kReachable, 10, 1, {made, init, At("_dl_start_user", "", 0, loader)})};
  // Further in, code of the loader's is a place as any other.
  there_.losses[0].stack.push_back(At("main", "a.c", 3));
  EXPECT_EQ(Compared().differences(), 2u);
}

// Valgrind has no name for the code that returns from a signal, and finds no way on from another stack.
TEST_F(CompareTest, TheFrameOfASignalIsLeftOut) {
  const std::string libc = "/lib/x86_64-linux-gnu/libc.so.6";
  const LossFrame theirs = {0x4ad404f, libc, "", "", "", 0};
  here_.losses = {Make(LeakKind::kDefinite, 10, 1,
                       {At("OnSignal", "a.c", 9), At("__restore_rt", "", 0, libc), At("main", "a.c", 3)})};
  there_.losses = {Make(LeakKind::kDefinite, 10, 1, {At("OnSignal", "a.c", 9), theirs, At("main", "a.c", 3)})};
  EXPECT_EQ(Only().verdict, Verdict::kAgree);
  EXPECT_EQ(Only().stage, MatchStage::kLines);
  there_.losses = {Make(LeakKind::kDefinite, 10, 1, {At("OnSignal", "a.c", 9), theirs})};
  EXPECT_EQ(Only().verdict, Verdict::kAgree);
}

TEST_F(CompareTest, OtherLibrariesArePairedByTheProjectsFunctions) {
  const std::string libc = "/lib/x86_64-linux-gnu/libc.so.6";
  here_.losses = {Make(LeakKind::kDefinite, 10, 2,
                       {At("strdup", "strdup.c", 42, libc), At("f", "a.c", 1), At("main", "a.c", 3)})};
  there_.losses = {Make(LeakKind::kDefinite, 10, 2,
                        {At("__strdup", "", 0, libc), At("f", "a.c", 1), At("main", "a.c", 3)})};
  EXPECT_EQ(Only().verdict, Verdict::kAgree);
  EXPECT_EQ(Only().stage, MatchStage::kProject);
}

TEST_F(CompareTest, CallsInAFileWithoutNamesArePairedByTheirPlaceInThePage) {
  const LossFrame main = At("main", "a.c", 3);
  here_.losses = {Make(LeakKind::kDefinite, 300, 3, {Nameless(0x1159), Nameless(0x11c7)}),
                  Make(LeakKind::kDefinite, 50, 1, {Nameless(0x11a7), Nameless(0x11d1)}),
                  Make(LeakKind::kDefinite, 7, 1, {Nameless(0x2159), main})};
  there_.losses = {Make(LeakKind::kDefinite, 7, 1, {NamelessThere(0x2159), main}),
                   Make(LeakKind::kDefinite, 50, 1, {NamelessThere(0x11a7), NamelessThere(0x11d1)}),
                   Make(LeakKind::kDefinite, 300, 3, {NamelessThere(0x1159), NamelessThere(0x11c7)})};
  const Comparison comparison = Compared();
  ASSERT_EQ(comparison.leaks.size(), 3u);
  for (const ComparedLeak& leak : comparison.leaks) {
    EXPECT_EQ(leak.verdict, Verdict::kAgree);
    EXPECT_EQ(leak.stage, MatchStage::kLines);
  }
}

TEST_F(CompareTest, OtherCallsInAProgramWithoutNamesAreOtherLeaks) {
  here_.losses = {Make(LeakKind::kDefinite, 100, 1, {Nameless(0x1177), Nameless(0x11f2)})};
  there_.losses = {Make(LeakKind::kDefinite, 100, 1, {NamelessThere(0x119c), NamelessThere(0x11fe)})};
  Comparison comparison = Compared();
  EXPECT_EQ(comparison.differences(), 2u);
  ASSERT_EQ(comparison.leaks.size(), 2u);
  EXPECT_EQ(comparison.leaks[0].verdict, Verdict::kOnlyHere);
  EXPECT_THAT(comparison.leaks[0].reasons, Contains(HasSubstr("a leak only there has a stack that differs in nothing")));
  EXPECT_EQ(comparison.leaks[1].verdict, Verdict::kOnlyThere);
  EXPECT_THAT(comparison.leaks[1].reasons, Contains(HasSubstr("a leak only here")));
  // Two of one side are two rows.
  here_.losses.push_back(Make(LeakKind::kDefinite, 100, 1, {Nameless(0x11b2), Nameless(0x11f2)}));
  EXPECT_EQ(Compared().differences(), 3u);
  // Another stack is no reason.
  here_.losses = {Make(LeakKind::kDefinite, 100, 1, {Nameless(0x1177)})};
  comparison = Compared();
  ASSERT_EQ(comparison.leaks.size(), 2u);
  for (const ComparedLeak& leak : comparison.leaks) EXPECT_THAT(leak.reasons, IsEmpty());
}

// The machines have other versions of a library of the system, which has no names of functions.
TEST_F(CompareTest, CodeOfTheSystemWithoutNamesIsPairedByItsFileAtLast) {
  const std::string library = "/usr/lib/libfont.so.1";
  here_.losses = {Make(LeakKind::kReachable, 10, 1, {Nameless(0x5432, library), Nameless(0x1177)})};
  there_.losses = {Make(LeakKind::kReachable, 10, 1, {NamelessThere(0x5448, library), NamelessThere(0x1177)})};
  EXPECT_EQ(Only().verdict, Verdict::kAgree);
  EXPECT_EQ(Only().stage, MatchStage::kFiles);
  EXPECT_EQ(StageName(MatchStage::kFiles), "files");
  EXPECT_THAT(RenderComparisonText(analysis_, there_, Compared(), {}), HasSubstr("paired by files"));
  there_.losses[0].stack[2] = NamelessThere(0x119c);
  EXPECT_EQ(Compared().differences(), 2u) << "the program's own code is another call";
}

// The address of what a signal interrupted is no call's, nor is that of memcheck's client request.
TEST_F(CompareTest, WhatIsNoCallHasNoPlace) {
  const std::string libc = "/lib/x86_64-linux-gnu/libc.so.6";
  here_.losses = {Make(LeakKind::kDefinite, 10, 1,
                       {Nameless(0x1177), At("__restore_rt", "", 0, libc), Nameless(0x1201)})};
  there_.losses = {Make(LeakKind::kDefinite, 10, 1,
                        {NamelessThere(0x1177), {0x4ad404f, libc, "", "", "", 0}, NamelessThere(0x12f8)})};
  EXPECT_EQ(Only().verdict, Verdict::kAgree);
  EXPECT_EQ(Only().stage, MatchStage::kLines);
  here_.losses = {Make(LeakKind::kDefinite, 10, 1, {Nameless(0x1177), Nameless(0x1201)})};
  here_.losses[0].stack[0].function = "block_alloc";
  there_.losses = {Make(LeakKind::kDefinite, 10, 1, {NamelessThere(0x1169), NamelessThere(0x1201)})};
  there_.losses[0].stack.erase(there_.losses[0].stack.begin());
  EXPECT_EQ(Only().verdict, Verdict::kAgree);
}

TEST_F(CompareTest, FramesWithoutNamesCanBeFoundAgain) {
  here_.losses = {Make(LeakKind::kDefinite, 100, 1, {Nameless(0x1177), Nameless(0x11f2)})};
  there_.losses = {Make(LeakKind::kDefinite, 50, 1, {NamelessThere(0x119c)})};
  const std::string text = RenderComparisonText(analysis_, there_, Compared(), {});
  EXPECT_THAT(text, HasSubstr("        app+0x1177\n        app+0x11f2\n"));
  EXPECT_THAT(text, HasSubstr("        0x10919B  app\n"));
  words::StringSink json;
  RenderComparisonJson(analysis_, there_, Compared(), json);
  EXPECT_THAT(json.text(), HasSubstr(R"({"module":"/work/app","offset":4471})"));
  EXPECT_THAT(json.text(), HasSubstr(R"({"module":"/work/app","address":1085851})"));
}

TEST_F(CompareTest, AStackThatNumCallersCutIsTheBeginningOfOurs) {
  here_.losses = {Make(LeakKind::kDefinite, 10, 1, stack_),
                  Make(LeakKind::kDefinite, 20, 2,
                       {At("f", "a.c", 1), At("g", "a.c", 2), At("h", "a.c", 7), At("main", "a.c", 9)})};
  there_.losses = {Make(LeakKind::kDefinite, 30, 3, {At("f", "a.c", 1), At("g", "a.c", 2)}, true)};
  EXPECT_EQ(Only().verdict, Verdict::kAgree);
  there_.losses[0].cut = false;  // a whole stack is another one
  EXPECT_EQ(Compared().leaks.size(), 3u);
}

TEST_F(CompareTest, OurStackThatEndedEarlyIsTheBeginningOfTheirs) {
  here_.losses = {Make(LeakKind::kDefinite, 10, 1, {At("f", "a.c", 1)}, true)};
  there_.losses = {Make(LeakKind::kDefinite, 10, 1, stack_)};
  EXPECT_EQ(Only().verdict, Verdict::kAgree);
}

TEST_F(CompareTest, OperatorNewIsOneFrameHereAndAnotherThere) {
  here_.losses = {Make(LeakKind::kDefinite, 10, 1, stack_)};
  here_.losses[0].stack[0].function = "operator new(unsigned long)";
  there_.losses = {Make(LeakKind::kDefinite, 10, 1, stack_)};
  there_.losses[0].stack[0].function = "operator new[](unsigned long)";
  EXPECT_EQ(Only().verdict, Verdict::kAgree);
}

// Of what the program's own allocator told, memcheck has no frame of an allocator.
TEST_F(CompareTest, BlocksOfTheProgramsOwnAllocatorsArePaired) {
  here_.losses = {Make(LeakKind::kDefinite, 10, 1, stack_)};
  here_.losses[0].stack[0].function = "block_alloc";
  there_.losses = here_.losses;
  there_.losses[0].stack.erase(there_.losses[0].stack.begin());
  EXPECT_EQ(Only().verdict, Verdict::kAgree);
}

TEST_F(CompareTest, TheSizeOfAlignedOperatorNewIsExpectedToDiffer) {
  here_.losses = {Make(LeakKind::kDefinite, 256, 1, stack_)};
  here_.losses[0].stack[0].function = "operator new(unsigned long, std::align_val_t)";
  there_.losses = here_.losses;
  there_.losses[0].bytes = 10;
  EXPECT_TRUE(Only().expected);
  EXPECT_THAT(Only().reasons, Contains(HasSubstr("aligned operator new")));
  here_.losses[0].stack[0].function = "operator new(unsigned long)";
  EXPECT_FALSE(Only().expected);
}

TEST_F(CompareTest, WhatOneSideAloneHasIsSaid) {
  here_.losses = {Make(LeakKind::kDefinite, 10, 1, stack_)};
  there_.losses = {Make(LeakKind::kDefinite, 10, 1, {At("other", "b.c", 1), At("main", "a.c", 3)})};
  const Comparison comparison = Compared();
  ASSERT_EQ(comparison.leaks.size(), 2u);
  EXPECT_EQ(comparison.leaks[0].verdict, Verdict::kOnlyHere);
  EXPECT_EQ(comparison.leaks[1].verdict, Verdict::kOnlyThere);
  EXPECT_EQ(comparison.differences(), 2u);
}

TEST_F(CompareTest, WhatHasNoNamesForItsLibraryIsGoneIsSaid) {
  there_.losses = {Make(LeakKind::kDefinite, 10, 1, {At("", "", 0, ""), At("main", "a.c", 3)})};
  EXPECT_THAT(Only().reasons, Contains(HasSubstr("--keep-debuginfo=yes")));
  there_.losses = {Make(LeakKind::kDefinite, 10, 1, {At("", "", 0, "/lib/x.so"), At("main", "a.c", 3)})};
  EXPECT_THAT(Only().reasons, Not(Contains(HasSubstr("--keep-debuginfo=yes"))));
}

TEST_F(CompareTest, KindsThatWereNotAskedForAreExpected) {
  there_.shown = LeakKindSet::Default();
  here_.losses = {Make(LeakKind::kReachable, 10, 1, stack_)};
  EXPECT_EQ(Only().verdict, Verdict::kOnlyHere);
  EXPECT_TRUE(Only().expected);
  EXPECT_EQ(Compared().differences(), 0u);
  here_.losses[0].kind = LeakKind::kDefinite;
  EXPECT_EQ(Compared().differences(), 1u);
}

TEST_F(CompareTest, WhatAPluginsConstructorAllocatesIsNotTheLoaders) {
  const std::string loader = "/lib64/ld-linux-x86-64.so.2";
  const LossFrame open = At("dl_open_worker", "", 0, loader);
  here_.losses = {Make(LeakKind::kDefinite, 10, 1, {At("_dl_new_object", "", 0, loader), open})};
  EXPECT_TRUE(Only().expected);
  here_.losses = {Make(LeakKind::kDefinite, 10, 1, {At("init", "p.c", 3, "/work/p.so"), open})};
  EXPECT_FALSE(Only().expected);
  EXPECT_EQ(Compared().differences(), 1u);
  here_.losses = {Make(LeakKind::kDefinite, 10, 1,
                       {At("init", "", 0, "/usr/lib/p.so"), At("call_init", "", 0, loader), open})};
  EXPECT_FALSE(Only().expected);
}

TEST_F(CompareTest, AnotherFirstBlockOfACircleIsExpected) {
  const std::vector<LossFrame> other = {At("other", "b.c", 1), At("main", "a.c", 3)};
  here_.losses = {Make(LeakKind::kDefinite, 10, 1, stack_), Make(LeakKind::kIndirect, 30, 1, other)};
  there_.losses = {Make(LeakKind::kIndirect, 10, 1, stack_), Make(LeakKind::kDefinite, 30, 1, other)};
  Comparison comparison = Compared();
  EXPECT_EQ(comparison.differences(), 0u);
  EXPECT_EQ(comparison.expected, 2u);
  ASSERT_EQ(comparison.leaks.size(), 2u);
  for (const ComparedLeak& leak : comparison.leaks) {
    EXPECT_EQ(leak.verdict, Verdict::kKindDiffers);
    EXPECT_THAT(leak.reasons, Contains(HasSubstr("in a circle")));
  }
  // That one more is lost definitely no circle explains.
  there_.losses[1].kind = LeakKind::kIndirect;
  comparison = Compared();
  EXPECT_EQ(comparison.differences(), 1u);
  EXPECT_EQ(comparison.expected, 0u);
  // Nor that other amounts are lost.
  there_.losses[1] = Make(LeakKind::kDefinite, 31, 1, other);
  EXPECT_EQ(Compared().differences(), 2u);
}

TEST_F(CompareTest, WhatTheRuntimeKeepsIsExpected) {
  const std::string libc = "/lib/x86_64-linux-gnu/libc.so.6";
  const std::string libstdcxx = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6";
  here_.losses = {Make(LeakKind::kReachable, 72704, 1, {At("", "", 0, libstdcxx)}),
                  Make(LeakKind::kReachable, 4096, 1,
                       {At("_IO_file_doallocate", "filedoalloc.c", 101, libc), At("puts", "p.c", 1, libc),
                        At("main", "a.c", 3)}),
                  Make(LeakKind::kPossible, 288, 1, {At("_dl_allocate_tls", "dl-tls.c", 600, libc)})};
  there_.losses = {Make(LeakKind::kPossible, 272, 1, {At("_dl_allocate_tls", "dl-tls.c", 600, libc)})};
  const Comparison comparison = Compared();
  EXPECT_EQ(comparison.differences(), 0u);
  EXPECT_EQ(comparison.expected, 3u);
  there_.frees_libc = false;
  EXPECT_EQ(Compared().differences(), 0u);
}

TEST_F(CompareTest, WithoutAScanUnfreedIsComparedWithAllKindsTogether) {
  here_.scan = nullptr;
  here_.losses = {Make(LeakKind::kUnfreed, 15, 3, stack_)};
  there_.losses = {Make(LeakKind::kDefinite, 10, 2, stack_), Make(LeakKind::kReachable, 5, 1, stack_)};
  EXPECT_EQ(Only().verdict, Verdict::kAgree);
  EXPECT_THAT(Compared().notes, Contains(HasSubstr("was not scanned")));
  there_.losses.pop_back();
  EXPECT_EQ(Only().verdict, Verdict::kAmountDiffers);
}

TEST_F(CompareTest, ReasonsNameWhatIsKnownOfTheRuns) {
  here_.losses = {Make(LeakKind::kDefinite, 10, 2, stack_)};
  there_.heap = ValgrindRun::Heap{.allocations = 9};
  there_.suppressions = {{"my_supp", 4}};
  there_.damage = "it is cut short at byte 7";
  analysis_.totals.allocations = 12;
  analysis_.process.end = ProcessInfo::End::kSignal;
  const std::vector<std::string> reasons = Only().reasons;
  EXPECT_THAT(reasons, Contains(HasSubstr("my_supp (4)")));
  EXPECT_THAT(reasons, Contains(HasSubstr("12 allocations here, 9 there")));
  EXPECT_THAT(reasons, Contains(HasSubstr("did not end by itself here")));
  EXPECT_THAT(reasons, Contains(HasSubstr("cut short at byte 7")));
}

TEST_F(CompareTest, WhatAForkChildInheritedIsOnlyThereAndExpected) {
  const std::vector<LossFrame> parents = {At("cache", "a.c", 7), At("main", "a.c", 30)};
  here_.losses = allocated_ = {Make(LeakKind::kDefinite, 10, 2, stack_)};
  there_.losses = {Make(LeakKind::kDefinite, 10, 2, stack_),
                   Make(LeakKind::kReachable, 50, 1, parents)};
  there_.heap = ValgrindRun::Heap{.allocations = 9};
  EXPECT_EQ(Compared().differences(), 1u) << "it was not forked";
  analysis_.process.forked = true;
  const Comparison comparison = Compared();
  EXPECT_EQ(comparison.differences(), 0u);
  EXPECT_EQ(comparison.expected, 1u);
  ASSERT_EQ(comparison.leaks.size(), 2u);
  EXPECT_EQ(comparison.leaks[0].verdict, Verdict::kOnlyThere);
  EXPECT_THAT(comparison.leaks[0].reasons,
              testing::ElementsAre(HasSubstr("allocated before the fork")));
  // As many callers as Valgrind shows by itself.
  there_.losses[1] = Make(LeakKind::kReachable, 50, 1, {parents[0]}, true);
  EXPECT_EQ(Compared().differences(), 0u);
}

TEST_F(CompareTest, WhatAForkChildMayHaveAllocatedIsNoInheritance) {
  const std::vector<LossFrame> once = {At("cache", "a.c", 7), At("main", "a.c", 30)};
  analysis_.process.forked = true;
  allocated_ = {Make(LeakKind::kUnfreed, 50, 1, once)};  // and freed
  there_.losses = {Make(LeakKind::kReachable, 50, 1, once)};
  EXPECT_EQ(Compared().differences(), 1u);
  there_.losses[0].stack[1].line = 8;  // names alone
  EXPECT_EQ(Compared().differences(), 1u);
  there_.losses[0] = Make(LeakKind::kReachable, 50, 1, {once[0]}, true);
  EXPECT_EQ(Compared().differences(), 1u) << "the beginning of a stack here";
  there_.losses[0] = Make(LeakKind::kReachable, 50, 1, stack_);
  EXPECT_EQ(Compared().differences(), 0u);
  allocated_.push_back(Make(LeakKind::kUnfreed, 1, 1, {}, true));
  EXPECT_EQ(Compared().differences(), 1u) << "a stack that is not known may be any";
  allocated_.pop_back();
  analysis_.coverage.events_missing = true;
  EXPECT_EQ(Compared().differences(), 1u);
  analysis_.coverage.events_missing = false;
  analysis_.process.sample_bytes = 4096;
  EXPECT_EQ(Compared().differences(), 1u);
}

// They may be sites of the child's in another build.
TEST_F(CompareTest, StacksWithoutNamesAreNoInheritance) {
  analysis_.process.forked = true;
  allocated_ = {Make(LeakKind::kUnfreed, 50, 1, {Nameless(0x1177), Nameless(0x11f2)})};  // and freed
  there_.losses = {Make(LeakKind::kReachable, 50, 1, {NamelessThere(0x119c), NamelessThere(0x11fe)})};
  EXPECT_EQ(Compared().differences(), 1u);
  there_.losses[0].stack.push_back(At("main", "a.c", 3));
  EXPECT_EQ(Compared().differences(), 0u) << "none has this shape";
}

TEST_F(CompareTest, GLibsSlicesAreSaidToBeOthersUnderValgrind) {
  const std::string glib = "/usr/lib/libglib-2.0.so.0";
  here_.losses = {Make(LeakKind::kReachable, 2016, 2, {At("g_slice_alloc", "", 0, glib), At("main", "a.c", 3)})};
  EXPECT_THAT(Only().reasons, Contains(HasSubstr("G_SLICE=always-malloc")));
}

TEST_F(CompareTest, SlicesThatAreOfMallocHereAreNoOthersUnderValgrind) {
  const std::string glib = "/usr/lib/libglib-2.0.so.0";
  const LossFrame in_main = At("main", "a.c", 3), alloc = At("g_slice_alloc", "", 1, glib);
  const Loss small = Make(LeakKind::kDefinite, 96, 2, {At("g_malloc", "", 2, glib), alloc, in_main});
  const auto of_slabs = Contains(HasSubstr("G_SLICE=always-malloc"));
  here_.losses = {small};
  EXPECT_THAT(Only().reasons, Not(of_slabs)) << "only here";
  there_.losses = {small};
  there_.losses[0].blocks = 3;
  EXPECT_THAT(Only().reasons, Not(of_slabs));

  // As every slice there is: what is here tells.
  here_.losses.clear();
  EXPECT_THAT(Only().reasons, of_slabs);
  const auto of_there = [&] {
    for (const ComparedLeak& leak : Compared().leaks) {
      if (leak.verdict == Verdict::kOnlyThere) return leak.reasons;
    }
    return std::vector<std::string>();
  };
  here_.losses = {small};
  const LossFrame in_other = At("other", "b.c", 4);
  here_.losses[0].stack.back() = in_other;
  there_.losses[0] = small;
  EXPECT_THAT(of_there(), Not(of_slabs));
  // A large one is of malloc beside slabs as well, and so is the account of them.
  here_.losses.push_back(
      Make(LeakKind::kReachable, 1008, 1, {Nameless(0x72994, glib), alloc, in_other}));
  EXPECT_THAT(of_there(), of_slabs);
  here_.losses = {Make(LeakKind::kReachable, 1280, 1,
                       {At("g_malloc0", "", 2, glib), Nameless(0x73100, glib), alloc, in_main})};
  there_.losses.clear();
  EXPECT_THAT(Only().reasons, of_slabs);
}

// Under Valgrind, as GLib asks; all of these without names for what GLib does not export.
TEST_F(CompareTest, WhatGLibDoesForMemcheckIsExpected) {
  const std::string glib = "/usr/lib/libglib-2.0.so.0", gobject = "/usr/lib/libgobject-2.0.so.0";
  const LossFrame allocate = At("g_malloc0", "", 0, glib);
  const LossFrame loader = At("call_init", "dl-init.c", 74, "/lib64/ld-linux-x86-64.so.2");
  const LossFrame types = At("g_type_register_fundamental", "", 0, gobject);

  // The node of a fundamental type, behind 8 bytes of the block.
  here_.losses = {Make(LeakKind::kPossible, 96, 1, {allocate, Nameless(0x32818, gobject),
                                                    Nameless(0x32e8b, gobject), types, loader})};
  Loss node = Make(LeakKind::kReachable, 88, 1, {});
  node.stack = {NamelessThere(0x3287e, gobject + ".7400.6"),
                NamelessThere(0x32e8b, gobject + ".7400.6"), types, loader};
  there_.losses = {node};
  ComparedLeak leak = Only();
  EXPECT_EQ(leak.verdict, Verdict::kAmountDiffers);
  EXPECT_TRUE(leak.expected);
  EXPECT_THAT(leak.reasons, ElementsAre(HasSubstr("GLib tells Valgrind of blocks within those")));
  there_.losses[0].bytes = 60;
  EXPECT_FALSE(Only().expected) << "that is more than what is in front of it";
  there_.losses[0].bytes = 88;
  here_.losses[0].kind = LeakKind::kDefinite;
  EXPECT_FALSE(Only().expected);
  here_.losses[0].kind = LeakKind::kReachable;
  there_.losses[0].stack[1].ip += 16;
  there_.losses[0].stack[2].object = "/usr/lib/libother.so";
  there_.losses[0].stack[2].function = "other";
  EXPECT_EQ(Compared().differences(), 2u) << "another call";

  // What a type leads to.
  const std::vector<LossFrame> data = {allocate, Nameless(0x33bb7, gobject), types, loader};
  here_.losses = {Make(LeakKind::kPossible, 148, 1, data)};
  there_.losses = {Make(LeakKind::kReachable, 148, 1, data)};
  leak = Only();
  EXPECT_TRUE(leak.expected);
  EXPECT_THAT(leak.reasons, ElementsAre(HasSubstr("the nodes of fundamental types begin")));
  there_.losses[0].kind = LeakKind::kDefinite;
  EXPECT_FALSE(Only().expected);
  here_.losses = {Make(LeakKind::kPossible, 148, 1, {At("init", "p.c", 9), types, loader})};
  there_.losses = {Make(LeakKind::kReachable, 148, 1, {At("init", "p.c", 9), types, loader})};
  EXPECT_FALSE(Only().expected) << "the program's block";

  // An array of a hash table.
  const std::vector<LossFrame> array = {
      At("g_realloc", "", 0, glib), Nameless(0x404f4, glib),
      At("g_hash_table_insert", "", 0, glib), At("main", "a.c", 3)};
  here_.losses = {Make(LeakKind::kReachable, 32, 1, array)};
  there_.losses = {Make(LeakKind::kReachable, 64, 1, array)};
  leak = Only();
  EXPECT_TRUE(leak.expected);
  EXPECT_THAT(leak.reasons, ElementsAre(HasSubstr("an array of a hash table of GLib's")));
  there_.losses[0].bytes = 65;
  EXPECT_FALSE(Only().expected);
  there_.losses[0].bytes = 64;
  there_.losses[0].kind = LeakKind::kDefinite;
  EXPECT_FALSE(Only().expected);
  const std::vector<LossFrame> entry = {
      At("g_malloc", "", 0, glib), At("each", "a.c", 9),
      At("g_hash_table_foreach", "", 0, glib), At("main", "a.c", 3)};
  here_.losses = {Make(LeakKind::kReachable, 32, 1, entry)};
  there_.losses = {Make(LeakKind::kReachable, 64, 1, entry)};
  EXPECT_FALSE(Only().expected) << "the program's block";
}

// In GLib of 2.76 and later, which has no slices.
TEST_F(CompareTest, AnObjectWithPrivateDataIsTwoBlocksForMemcheck) {
  const std::string glib = "/usr/lib/libglib-2.0.so.0", gobject = "/usr/lib/libgobject-2.0.so.0";
  // Frames of one address would be inlined.
  const std::vector<LossFrame> object = {At("g_type_create_instance", "", 1, gobject),
                                         At("g_object_new", "", 2, gobject), At("main", "a.c", 3)};
  std::vector<LossFrame> with_malloc = {At("g_malloc0", "", 0, glib)};
  with_malloc.insert(with_malloc.end(), object.begin(), object.end());
  here_.losses = {Make(LeakKind::kReachable, 40, 1, with_malloc)};
  Loss two = Make(LeakKind::kReachable, 48, 2, {});
  two.stack = object;
  there_.losses = {two};
  const ComparedLeak leak = Only();
  EXPECT_EQ(leak.verdict, Verdict::kAmountDiffers);
  EXPECT_TRUE(leak.expected);
  EXPECT_THAT(leak.reasons, ElementsAre(HasSubstr("GLib tells Valgrind of blocks within those")));
  there_.losses[0].blocks = 3;
  EXPECT_FALSE(Only().expected);
}

TEST_F(CompareTest, OneErrorIsOne) {
  there_.other_errors = 1;
  EXPECT_THAT(Compared().notes, Contains(HasSubstr("there is 1 error other than leaks")));
  there_.other_errors = 2;
  EXPECT_THAT(Compared().notes, Contains(HasSubstr("there are 2 errors other than leaks")));
}

TEST_F(CompareTest, SidesFitTheTerminal) {
  const std::vector<LossFrame> other = {At("other", "b.c", 1), At("main", "a.c", 3)};
  const Loss definite = Make(LeakKind::kDefinite, 1'151'616, 11'996, other);
  const Loss possible = Make(LeakKind::kPossible, 1'151'616, 11'996, other);
  here_.losses = {Make(LeakKind::kDefinite, 1'151'616, 11'996, stack_),
                  Make(LeakKind::kReachable, 1'151'616, 11'996, stack_), definite, possible};
  there_.losses = {Make(LeakKind::kPossible, 10, 2, stack_), definite, possible};
  const std::string text = RenderComparisonText(analysis_, there_, Compared(), {});
  EXPECT_THAT(text, HasSubstr("here   definite 1,151,616 bytes in 11,996 blocks"));
  EXPECT_THAT(text, HasSubstr("agree  definite 1,151,616 bytes in 11,996 blocks, possible "
                              "1,151,616 bytes in\n         11,996 blocks\n"));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    EXPECT_LE(words::DisplayWidth(line), 80u) << line;
  }
}

TEST_F(CompareTest, TextAndJsonSayTheSame) {
  here_.losses = {Make(LeakKind::kReachable, 10, 2, stack_)};
  there_.losses = {Make(LeakKind::kDefinite, 10, 2, stack_)};
  there_.command = {"./app"};
  analysis_.file = "app.mtr";
  analysis_.process.command = {"./app"};
  const Comparison comparison = Compared();
  const std::string text = RenderComparisonText(analysis_, there_, comparison, {});
  EXPECT_THAT(text, HasSubstr("404 ms, 101 times as long"));
  EXPECT_THAT(text, HasSubstr("LEAKS  1 kind differs\n"));
  EXPECT_THAT(text, HasSubstr("here   reachable 10 bytes in 2 blocks\n"));
  EXPECT_THAT(text, HasSubstr("there  definite 10 bytes in 2 blocks\n"));
  EXPECT_THAT(text, HasSubstr("f  a.c:1\n"));
  words::StringSink json;
  RenderComparisonJson(analysis_, there_, comparison, json);
  EXPECT_THAT(json.text(), HasSubstr("\"schema\": \"memtrace-compare/1\""));
  EXPECT_THAT(json.text(), HasSubstr("\"verdict\":\"kind differs\""));
}

}  // namespace
}  // namespace memtrace::report::valgrind
