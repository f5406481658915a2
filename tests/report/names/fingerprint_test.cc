// What a fingerprint is made of, and that it tells different functions apart.

#include "report/names/fingerprint.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/names/frames_filter.h"
#include "tests/report/render/render_made_up.h"

namespace memtrace::report {
namespace {

constexpr auto kMalloc = format::AllocFunction::kMalloc;

struct Spellings {
  const char* identity;
  std::vector<const char*> names;
};

// Each line is one function as GCC's and clang's symbols and debug information name it.
TEST(FunctionIdentityTest, IsTheSameHoweverACompilerSpellsTheFunction) {
  const Spellings all[] = {
      {"grow", {"grow", "grow.part.0", "grow.constprop.0.isra.0", "grow.cold", "grow.llvm.123"}},
      {"app::f(int)", {"app::f(int)", "app::f(int) [clone .isra.0]", "app::f(int) const",
                       "app::f[abi:cxx11](int)", "non-virtual thunk to app::f(int)"}},
      {"app::Go::{lambda}::operator()(int)",
       {"app::Go(int)::{lambda(int)#1}::operator()(int) const",
        "app::Go(int)::{lambda(int)#2}::operator()(int) const", "app::Go(int)::$_0::operator()(int) const",
        "app::Go(int)::{lambda}::operator()(int)", "app::Go::<lambda(int)>::operator()(int)",
        "app::Go(int)::{lambda(int)#1}::_FUN(int)", "app::Go(int)::$_7::__invoke(int)"}},
      {"(anonymous namespace)::Run<int>(int)",
       {"void* (anonymous namespace)::Run<int>(int)", "(anonymous namespace)::Run<int>(int)"}},
      {"f(long-unsigned)", {"f(unsigned long)", "f(long unsigned int)"}},
      {"f(basic_string<char>&)",
       {"f(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)",
        "f(std::string const&)", "f(const std::__cxx11::basic_string<char>&)"}},
      {"app::Pool<Node>::Make()",
       {"app::Pool<app::Node, std::allocator<app::Node> >::Make()", "app::Pool<app::Node>::Make()"}},
      {"Fill<vector<Record>>(vector<Record>*)",
       {"void Fill<std::vector<Record, std::allocator<Record> > >(std::vector<Record, "
        "std::allocator<Record> >*)",
        "Fill<std::vector<Record> >(std::vector<Record>*)"}},
      {"N<5>::f()", {"N<5ul>::f()", "N<5>::f()", "N<5u>::f()"}},
      {"{static initialisation}",
       {"_GLOBAL__sub_I_main", "__static_initialization_and_destruction_0(int, int)",
        "__cxx_global_var_init", "__cxx_global_var_init.3", "_GLOBAL__sub_I_main.cc"}},
      {"A::operator()(int)", {"A::operator()(int) const", "A::operator()(int)"}},
      {"A::operator<<(int)", {"A& A::operator<< <int>(int)", "A::operator<<(int)"}},
      {"A::operator new[](long-unsigned)", {"A::operator new[](unsigned long)"}},
      {"A::operator basic_string<char>()",
       {"A::operator std::__cxx11::basic_string<char, std::char_traits<char>, "
        "std::allocator<char> >() const"}},
      {"f(function)", {"f(void (*)(int))", "f(int (*)(char const*, ...))"}},
      {"core::fmt::write", {"core::fmt::write::h0123456789abcdef", "core::fmt::write",
                            "core::fmt::write::h0123456789abcdef.llvm.77",
                            "core::fmt::write::h0123456789abcdef [clone .llvm.77]"}},
  };
  for (const Spellings& function : all) {
    for (const char* name : function.names) {
      EXPECT_EQ(FunctionIdentity(name), function.identity) << name;
    }
  }
}

TEST(FunctionIdentityTest, TellsFunctionsApart) {
  const char* const different[] = {
      "f", "f(int)", "f(double)", "f(int, int)", "f(int*)", "f(int&)", "f()", "A::f()", "B::f()",
      "ns::A::f()", "(anonymous namespace)::f()", "T<int>::f()", "T<char>::f()", "t<int>(int)",
      "t<std::vector<int> >(int)", "t<std::vector<char> >(int)", "A::operator<(int)",
      "A::operator<<(int)", "A::operator()(int)", "A::operator[](int)", "A::A()", "A::~A()",
      "N<5>::f()", "N<6>::f()",
      "g()::{lambda(int)#1}::operator()(int) const", "g()::{lambda()#1}::operator()() const",
      "h()::{lambda()#1}::operator()() const",
  };
  for (const char* one : different) {
    for (const char* other : different) {
      if (one == other) continue;
      EXPECT_NE(FunctionIdentity(one), FunctionIdentity(other)) << one << " " << other;
    }
  }
}

TEST(FunctionIdentityTest, SurvivesAnyText) {
  for (const char* text : {"", "(", ")", "<", ">", "a<b", "a(b", "a)b", "{", "{lambda", "operator",
                           "operator(", "operator<", "operator ", "$_", "a::", "::", "[abi:", " ",
                           "f(int))", "a<(>)", "x->y", "f(]", "f<[>", "f((((", "<lambda(int)>",
                           "decltype (x) f()", "virtual thunk to "}) {
    FunctionIdentity(text);
  }
  // What closes nowhere is left as it is.
  for (const std::string& open : {std::string(8192, '<'), std::string(8192, '(')}) {
    EXPECT_EQ(FunctionIdentity(open), open);
  }
  std::string nested;
  for (int i = 0; i < 1000; ++i) nested += "A<";
  EXPECT_TRUE(absl::EndsWith(FunctionIdentity(nested + std::string(1000, '>') + "::f(int)"), "::f(int)"));
}

std::string Of(MadeUp& trace, const std::vector<Step>& steps) {
  const StackId stack = trace.Stack(steps);
  trace.AddSite(stack, 1, 1, 1);
  return trace.View().Fingerprint(stack, kMalloc);
}

TEST(FingerprintTest, IsKnownByItsDigits) {
  EXPECT_TRUE(IsFingerprint("0123456789abcdef"));
  for (const char* other : {"", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF",
                            "0123456789abcdeg"}) {
    EXPECT_FALSE(IsFingerprint(other)) << other;
  }
}

TEST(FingerprintTest, LeavesOutWhatCompilersAndLibrariesPutBetween) {
  MadeUp trace;
  const std::string plain = Of(trace, {{"app::Make()", "a.cc", 1}, {"app::Run()", "a.cc", 2},
                                       {"main", "main.cc", 3}});
  EXPECT_EQ(plain, Of(trace, {{"operator new(unsigned long)", "", 0, kLibc},
                              {"std::vector<int, std::allocator<int> >::push_back(int)",
                               "/usr/include/c++/12/bits/stl_vector.h", 5, kApp, true},
                              {"app::Make()", "/other/a.cc", 11, kApp, true},
                              {"app::Run() [clone .constprop.0]", "a.cc", 12},
                              {"main", "main.cc", 13}}));
  EXPECT_EQ(plain, Of(trace, {{"app::Make()", "a.cc", 1}, {"app::Make()", "a.cc", 1},
                              {"app::Run()", "a.cc", 2}, {"app::Make()", "a.cc", 1},
                              {"app::Run()", "a.cc", 2}, {"main", "main.cc", 3}}))
      << "recursion";
  EXPECT_EQ(plain, Of(trace, {{"app::Make()", "a.cc", 1},
                              {"fmt::call<int>(int)", "/usr/include/fmt/core.h", 2},
                              {"app::Run()", "a.cc", 2}, {"main", "main.cc", 3}}))
      << "a header of the system";
  EXPECT_NE(plain, Of(trace, {{"app::Make(int)", "a.cc", 1}, {"app::Run()", "a.cc", 2},
                              {"main", "main.cc", 3}}));
  EXPECT_NE(plain, Of(trace, {{"app::Make()", "a.cc", 1}, {"app::Walk()", "a.cc", 2},
                              {"main", "main.cc", 3}}));
  EXPECT_NE(plain, Of(trace, {{"app::Make()", "b.cc", 1}, {"app::Run()", "a.cc", 2},
                              {"main", "main.cc", 3}}));
}

TEST(FingerprintTest, AllocatesByFamily) {
  MadeUp trace;
  const StackId stack = trace.Stack({{"leak", "leak.c", 7}});
  trace.AddSite(stack, 1, 1, 1);
  const render::ReportView view = trace.View();
  using F = format::AllocFunction;
  for (const F same : {F::kCalloc, F::kRealloc, F::kReallocarray}) {
    EXPECT_EQ(view.Fingerprint(stack, same), view.Fingerprint(stack, F::kMalloc));
  }
  EXPECT_NE(view.Fingerprint(stack, F::kAlignedAlloc), view.Fingerprint(stack, F::kMalloc));
  EXPECT_EQ(view.Fingerprint(stack, F::kAlignedAlloc), view.Fingerprint(stack, F::kPosixMemalign));
}

TEST(StrictFingerprintTest, KnowsTheLine) {
  MadeUp trace;
  const StackId a = trace.Stack({{"leak", "leak.c", 7}});
  const StackId b = trace.Stack({{"leak", "leak.c", 8}});
  const StackId c = trace.Stack({{"leak", "/else/leak.c", 7}});
  for (const StackId stack : {a, b, c}) trace.AddSite(stack, 1, 1, 1);
  const render::ReportView view = trace.View();
  EXPECT_EQ(view.Fingerprint(a, kMalloc), view.Fingerprint(b, kMalloc));
  EXPECT_NE(view.StrictFingerprint(a, kMalloc), view.StrictFingerprint(b, kMalloc));
  EXPECT_EQ(view.StrictFingerprint(a, kMalloc), view.StrictFingerprint(c, kMalloc));
}

// All stacks of a stripped program were one.
TEST(FingerprintTest, FunctionsWithoutANameAreToldByTheirPlace) {
  Frame nameless;
  nameless.module = "/work/app";
  Frame main;
  main.function = "main";
  const auto at = [&](const char* module, uint64_t offset) {
    nameless.module = module;
    nameless.offset = offset;
    const Frame* const stack[] = {&nameless, &main};
    return Fingerprint(stack, kMalloc);
  };
  EXPECT_NE(at("/work/app", 0x1000), at("/work/app", 0x1010));
  EXPECT_EQ(at("/work/app", 0x1000), at("/elsewhere/app", 0x1000));
  EXPECT_NE(at("/work/app", 0x1000), at("/work/lib.so", 0x1000));
  EXPECT_EQ(at("", 0x7f0012340000), at("", 0x7f0056780000)) << "code that was made, at a place by chance";
}

// What a just-in-time compiler made was the only frame that counted: the stacks below it were one, and a new
// leak there passed a gate that knew another.
TEST(FingerprintTest, CodeThatWasMadeIsNoneOfTheProject) {
  MadeUp trace;
  const Step made = {"", "", 0, kMadeCode};
  const auto below = [&](const char* function) { return Of(trace, {Libc("malloc"), Libc(function), made, made}); };
  EXPECT_NE(below("setlocale"), below("tzset"));
  const Step own = {"Native()", "native.cc", 3};
  EXPECT_EQ(Of(trace, {own, made}), Of(trace, {own}));
  const StackId stack = trace.Stack({Libc("malloc"), Libc("setlocale"), made});
  trace.AddSite(stack, 1, 1, 1);
  EXPECT_EQ(trace.View().Caller(stack)->function, "setlocale") << "and no caller: it is an address";
}

TEST(FingerprintTest, OfAStackWithoutTheProjectIsOfWhatThereIs) {
  MadeUp trace;
  const std::string one = Of(trace, {Libc("setlocale"), Libc("bindtextdomain")});
  const std::string other = Of(trace, {Libc("tzset"), Libc("bindtextdomain")});
  EXPECT_NE(one, other);
}

// As they were before the report left these out.
TEST(FingerprintTest, PartsOfAllocatorsThatHaveNoNamesCountWhereThereIsNoProject) {
  const auto frame = [](const char* function, uint64_t offset, FrameRole role) {
    Frame frame;
    frame.function = function;
    frame.module = "/usr/lib/libglib-2.0.so.0";
    frame.offset = offset;
    frame.role = role;
    return frame;
  };
  const Frame part = frame("", 0x72994, FrameRole::kSystem);
  const Frame slice = frame("g_slice_alloc", 0, FrameRole::kAllocator);
  const Frame caller = frame("g_slist_prepend", 0, FrameRole::kSystem);
  const Frame* const stack[] = {&part, &slice, &caller};
  EXPECT_EQ(names::CutStack(stack).begin, 2u);
  EXPECT_TRUE(absl::StrContains(FingerprintText(stack, kMalloc, /*with_lines=*/false),
                                "libglib-2.0.so.0+0x72994\t\ng_slice_alloc\t\n"));
}

// All of ruby was a handful of fingerprints: each stack has main() of the program alone.
class LibraryFingerprintTest : public testing::Test {
 protected:
  struct Call {
    const char* function;
    const char* module;
    uint64_t offset = 0;
  };
  static std::string Of(const std::vector<Call>& calls, const char* program = kProgram) {
    std::vector<Frame> frames;
    for (const Call& call : calls) {
      Frame frame;
      frame.function = call.function;
      frame.module = call.module;
      frame.offset = call.offset;
      const bool is_program = frame.module == program;
      frame.role = names::RoleOf(frame, is_program ? uint32_t{format::kModuleExecutable} : 0);
      frames.push_back(std::move(frame));
    }
    std::vector<const Frame*> stack;
    for (const Frame& frame : frames) stack.push_back(&frame);
    return FingerprintText(stack, kMalloc, /*with_lines=*/false);
  }
  static constexpr const char* kProgram = "/usr/bin/ruby3.1";
  static constexpr const char* kOwn = "/work/ruby";
  static constexpr const char* kLibrary = "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1";
  static constexpr const char* kC = "/lib/x86_64-linux-gnu/libc.so.6";
};

TEST_F(LibraryFingerprintTest, OfAMainAroundALibraryItIsTheLibrarysFramesToo) {
  const std::string text = Of({{"fopen", kC}, {"", kLibrary, 0xd8484}, {"qsort", kC},
                               {"ruby_xmalloc", kLibrary}, {"rb_ary_push", kLibrary},
                               {"rb_ary_push", kLibrary}, {"main", kProgram},
                               {"__libc_start_call_main", kC}});
  EXPECT_EQ(text, absl::StrCat(kFingerprintVersion, "\nmalloc\nlibruby-3.1.so.3.1+0xd8484\t\n"
                               "rb_ary_push\t\nmain\t\n"));
  EXPECT_NE(Of({{"", kLibrary, 0xd8484}, {"main", kProgram}}),
            Of({{"", kLibrary, 0xd8490}, {"main", kProgram}}));
}

TEST_F(LibraryFingerprintTest, ItIsTheInnermostEight) {
  std::vector<Call> calls;
  for (uint64_t i = 0; i < 20; ++i) calls.push_back({"", kLibrary, 0x1000 + i});
  calls.push_back({"main", kProgram});
  const std::string text = Of(calls);
  EXPECT_TRUE(absl::EndsWith(text, "+0x1007\t\n")) << text;
}

TEST_F(LibraryFingerprintTest, WhereTheProjectHasFramesTheyAreAll) {
  const std::string main = absl::StrCat(kFingerprintVersion, "\nmalloc\nmain\t\n");
  EXPECT_EQ(Of({{"rb_ary_push", kLibrary}, {"main", kOwn}}, kOwn), main)
      << "no installed program: its author looks for main()";
  EXPECT_EQ(Of({{"fopen", kC}, {"main", kProgram}}), main) << "libc is no library of a package";
  EXPECT_EQ(Of({{"rb_ary_push", kLibrary}, {"load", kProgram}, {"main", kProgram}}),
            absl::StrCat(kFingerprintVersion, "\nmalloc\nload\t\nmain\t\n"));
  EXPECT_EQ(Of({{"rb_ary_push", kLibrary}, {"Init", "/work/plugin.so"}, {"", kLibrary, 0x10},
                {"main", kProgram}}),
            absl::StrCat(kFingerprintVersion, "\nmalloc\nInit\t\n"))
      << "a plugin of the user's";
}

TEST_F(LibraryFingerprintTest, HowAScriptCameToAnExtensionIsNotInIt) {
  const std::string leak = absl::StrCat(kFingerprintVersion, "\nmalloc\nleak\t\nmethod\t\n");
  const char* const extension = "/home/me/ext.so";
  EXPECT_EQ(Of({{"leak", extension}, {"method", extension}, {"", kProgram, 0x100},
                {"PyEval", kProgram}, {"main", kProgram}}), leak);
  EXPECT_EQ(Of({{"leak", extension}, {"method", extension}, {"map_next", kProgram},
                {"PyEval", kProgram}, {"main", kProgram}}), leak);
  EXPECT_EQ(Of({{"PyBytes_New", kProgram}, {"leak", extension}, {"", kProgram, 0x200},
                {"method", extension}, {"main", kProgram}}), leak) << "what it calls neither";
  EXPECT_NE(Of({{"leak", extension}, {"method", extension}, {"run", kOwn}, {"main", kOwn}}, kOwn),
            leak) << "a program of the project's own";
  EXPECT_NE(Of({{"leak", kProgram}, {"method", kProgram}, {"main", kProgram}}), leak);
}

}  // namespace
}  // namespace memtrace::report
