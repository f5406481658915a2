// Suppressions of Valgrind and LeakSanitizer: what is read, what matches, what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "report/names/frames_filter.h"
#include "report/suppress/memcheck_stack.h"
#include "report/suppress/runtime_suppressions.h"
#include "report/suppress/suppress_records.h"
#include "report/suppress/suppressions.h"
#include "tests/report/render/render_made_up.h"

namespace memtrace::report::suppress {
namespace {

using format::AllocFunction;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Frame Named(std::string function, std::string linkage_name = "", std::string module = "/opt/app",
            std::string file = "/src/app.cc", uint32_t line = 7) {
  return {.function = std::move(function), .linkage_name = std::move(linkage_name),
          .module = std::move(module), .file = std::move(file), .line = line};
}

class Frames {
 public:
  Frames(std::initializer_list<Frame> frames) : frames_(frames) {
    for (const Frame& frame : frames_) pointers_.push_back(&frame);
  }
  MemcheckStack Seen(AllocFunction function = AllocFunction::kMalloc) const {
    return AsMemcheckSees(function, pointers_);
  }
  const std::vector<const Frame*>& pointers() const { return pointers_; }

 private:
  std::vector<Frame> frames_;
  std::vector<const Frame*> pointers_;
};

Frame Main() {
  Frame frame = Named("main");
  return frame;
}
Frame Below() {
  Frame frame = Named("__libc_start_main", "", "/lib/x86_64-linux-gnu/libc.so.6", "");
  frame.role = FrameRole::kStart;
  return frame;
}

Suppressions Read(absl::string_view text) {
  Suppressions suppressions;
  const absl::Status status = suppressions.Add(text, "a.supp");
  EXPECT_TRUE(status.ok()) << status;
  return suppressions;
}

std::string Refused(absl::string_view text) {
  Suppressions suppressions;
  return std::string(suppressions.Add(text, "a.supp").message());
}

bool Matches(absl::string_view text, const MemcheckStack& stack,
             LeakKind kind = LeakKind::kDefinite) {
  Suppressions suppressions = Read(text);
  return suppressions.Match(kind, stack) != nullptr;
}

std::string Valgrind(absl::string_view frames, absl::string_view kinds = "") {
  return absl::StrCat("{\n  name\n  Memcheck:Leak\n", kinds, frames, "\n}\n");
}

const Frames kPlain = {Named("Load"), Named("ns::Run(int)", "_ZN2ns3RunEi"), Main(), Below()};

TEST(ValgrindSuppressionTest, MatchesTheBeginningOfTheStack) {
  EXPECT_TRUE(Matches(Valgrind("fun:malloc\nfun:Load"), kPlain.Seen()));
  EXPECT_TRUE(Matches(Valgrind("fun:malloc"), kPlain.Seen()));
  EXPECT_FALSE(Matches(Valgrind("fun:Load"), kPlain.Seen())) << "the allocator comes first";
  EXPECT_FALSE(Matches(Valgrind("fun:malloc\nfun:main"), kPlain.Seen()));
  EXPECT_FALSE(Matches(Valgrind("fun:calloc\nfun:Load"), kPlain.Seen()));
  EXPECT_FALSE(
      Matches(Valgrind("fun:malloc\nfun:Load\nfun:*\nfun:main\nfun:*\nfun:more"), kPlain.Seen()));
}

TEST(ValgrindSuppressionTest, DotsAreAnyFramesOrNone) {
  EXPECT_TRUE(Matches(Valgrind("...\nfun:main"), kPlain.Seen()));
  EXPECT_TRUE(Matches(Valgrind("fun:malloc\n...\nfun:Load\n...\nfun:main"), kPlain.Seen()));
  EXPECT_TRUE(Matches(Valgrind("fun:*alloc\n...\n...\nfun:(below main)"), kPlain.Seen()));
  EXPECT_FALSE(Matches(Valgrind("fun:malloc\n...\nfun:absent"), kPlain.Seen()));
  const Frames twice = {Named("a"), Named("b"), Named("a"), Named("c")};
  EXPECT_TRUE(Matches(Valgrind("...\nfun:a\nfun:c"), twice.Seen()));
}

TEST(ValgrindSuppressionTest, BelowMainIsNotBelowAThread) {
  Frame start = Named("start_thread", "", "/lib/x86_64-linux-gnu/libc.so.6", "");
  Frame clone = Named("clone3", "", "/lib/x86_64-linux-gnu/libc.so.6", "");
  start.role = clone.role = FrameRole::kStart;
  const Frames thread = {Named("Load"), Named("Worker"), start, clone};
  EXPECT_FALSE(Matches(Valgrind("fun:*alloc\n...\nfun:(below main)"), thread.Seen()));
  EXPECT_TRUE(Matches(Valgrind("fun:*alloc\n...\nfun:start_thread\nfun:clone"), thread.Seen()));
}

TEST(ValgrindSuppressionTest, NamesMatchMangledAndNot) {
  EXPECT_TRUE(Matches(Valgrind("...\nfun:_ZN2ns3RunEi"), kPlain.Seen()));
  EXPECT_TRUE(Matches(Valgrind("...\nfun:_ZN2ns*"), kPlain.Seen()));
  EXPECT_TRUE(Matches(Valgrind("...\nfun:ns::Run(int)"), kPlain.Seen()));
  EXPECT_TRUE(Matches(Valgrind("...\nfun:ns::Run"), kPlain.Seen()));
  EXPECT_TRUE(Matches(Valgrind("...\nfun:ns::R?n"), kPlain.Seen()));
  EXPECT_FALSE(Matches(Valgrind("...\nfun:ns::R?un"), kPlain.Seen()));
  EXPECT_TRUE(Matches(Valgrind("fun:malloc\nfun:Load@@V_2"), kPlain.Seen()));
}

TEST(ValgrindSuppressionTest, ObjectsAndSourcesMatch) {
  EXPECT_TRUE(Matches(Valgrind("obj:*/vgpreload_memcheck-*.so\nobj:/opt/a*"), kPlain.Seen()));
  EXPECT_FALSE(Matches(Valgrind("fun:malloc\nobj:*/libfoo.so"), kPlain.Seen()));
  EXPECT_TRUE(Matches(Valgrind("fun:malloc\nsrc:app.cc:7"), kPlain.Seen()));
  EXPECT_TRUE(Matches(Valgrind("fun:malloc\nsrc:*/app.cc"), kPlain.Seen()));
  EXPECT_FALSE(Matches(Valgrind("fun:malloc\nsrc:app.cc:8"), kPlain.Seen()));
  const Frames nameless = {Named("", "", ""), Main()};
  EXPECT_TRUE(Matches(Valgrind("fun:malloc\nobj:*\nfun:main"), nameless.Seen()));
  EXPECT_FALSE(Matches(Valgrind("fun:malloc\nfun:Load"), nameless.Seen()));
}

TEST(ValgrindSuppressionTest, OperatorNewStandsForMalloc) {
  const Frames one = {Named("operator new(unsigned long)", "_Znwm", "/lib/libstdc++.so.6"),
                      Named("Load")};
  EXPECT_TRUE(Matches(Valgrind("fun:_Znwm\nfun:Load"), one.Seen()));
  EXPECT_TRUE(Matches(Valgrind("fun:_Znam\nfun:Load"), one.Seen())) << "it jumps to _Znwm";
  EXPECT_TRUE(Matches(Valgrind("fun:operator new[](unsigned long)\nfun:Load"), one.Seen()));
  EXPECT_FALSE(Matches(Valgrind("fun:malloc\nfun:_Znwm\nfun:Load"), one.Seen()));
  const Frames two = {Named("operator new(unsigned long)", "_Znwm"),
                      Named("operator new(unsigned long, std::nothrow_t const&)",
                            "_ZnwmRKSt9nothrow_t"),
                      Named("Load")};
  EXPECT_TRUE(Matches(Valgrind("fun:_ZnwmRKSt9nothrow_t\nfun:Load"), two.Seen()));
  EXPECT_FALSE(Matches(Valgrind("fun:_Znwm\nfun:Load"), two.Seen()));
}

TEST(ValgrindSuppressionTest, ReallocIsMallocAsWell) {
  const MemcheckStack stack = kPlain.Seen(AllocFunction::kRealloc);
  EXPECT_TRUE(Matches(Valgrind("fun:realloc\nfun:Load"), stack));
  EXPECT_TRUE(Matches(Valgrind("fun:malloc\nfun:Load"), stack));
  EXPECT_FALSE(Matches(Valgrind("fun:calloc\nfun:Load"), stack));
  const MemcheckStack array = kPlain.Seen(AllocFunction::kReallocarray);
  EXPECT_TRUE(Matches(Valgrind("fun:realloc\nfun:reallocarray\nfun:Load"), array));
  EXPECT_TRUE(Matches(Valgrind("fun:realloc\nfun:Load"), array));
}

TEST(ValgrindSuppressionTest, MatchesOnlyItsKinds) {
  const std::string text = Valgrind("fun:malloc", "match-leak-kinds: possible,reachable\n");
  EXPECT_FALSE(Matches(text, kPlain.Seen(), LeakKind::kDefinite));
  EXPECT_TRUE(Matches(text, kPlain.Seen(), LeakKind::kPossible));
  EXPECT_TRUE(Matches(text, kPlain.Seen(), LeakKind::kUnfreed)) << "it may be one of them";
  EXPECT_FALSE(Matches(Valgrind("fun:malloc", "match-leak-kinds: none\n"), kPlain.Seen()));
  EXPECT_TRUE(Matches(Valgrind("fun:malloc", "match-leak-kinds: all\n"), kPlain.Seen()));
}

TEST(ValgrindSuppressionTest, SharesAFileWithOtherToolsAndKinds) {
  Suppressions suppressions = Read(
      "# shared\n\n"
      "{\n   race\n   Helgrind:Race\n   fun:Load\n   ...\n}\n"
      "{\n   param\n   Memcheck:Param\n   write(buf)\n   fun:write\n}\n"
      "{\n   fishy\n   Memcheck:FishyValue\n   malloc(size)\n   fun:malloc\n}\n"
      "{\n   both  \n   Addrcheck,Memcheck:Leak\n   fun:malloc\n}\n");
  ASSERT_EQ(suppressions.all().size(), 1u);
  EXPECT_EQ(suppressions.all().front().name, "both");
  EXPECT_EQ(suppressions.all().front().line, 21u);
}

TEST(ValgrindSuppressionTest, ThoseOfFreesAreOfNoLeak) {
  Suppressions all;
  ASSERT_TRUE(all.Add("{\n   f\n   Memcheck:Free\n   fun:_ZdlPvm\n   fun:drop\n}\n", "s").ok());
  MemcheckStack stack;
  stack.frames = {{.functions = {"_ZdlPvm", "operator delete(void*, unsigned long)"}}, {.functions = {"drop"}}};
  EXPECT_EQ(all.Match(LeakKind::kDefinite, stack), nullptr);
  EXPECT_NE(all.MatchFree(stack), nullptr);
  stack.frames[0].functions = {"free"};
  EXPECT_EQ(all.MatchFree(stack), nullptr);
}

TEST(ValgrindSuppressionTest, ErrorsNameFileAndLine) {
  EXPECT_THAT(Refused("{\n name\n Memcheck:Leek\n fun:malloc\n}"),
              HasSubstr("a.supp:3: memcheck knows no kind \"Leek\""));
  EXPECT_THAT(Refused("{\n name\n Memcheck:Leak\n fum:malloc\n}"),
              HasSubstr("a.supp:4: \"fum:malloc\" is no frame"));
  EXPECT_THAT(Refused("{\n name\n Memcheck:Leak\n fun:malloc\n"), HasSubstr("of line 1 has no }"));
  EXPECT_THAT(Refused("{\n name\n Memcheck:Leak\n fun:malloc\n{\n"), HasSubstr("a.supp:5:"));
  EXPECT_THAT(Refused("{\n name\n Memcheck:Leak\n ...\n}"), HasSubstr("without a frame"));
  EXPECT_THAT(Refused("{\n name\n Memcheck:Leak\n match-leak-kinds: lost\n fun:a\n}"),
              HasSubstr("a.supp:4: \"lost\""));
  EXPECT_THAT(Refused("{\n name\n Memcheck:Leak\n fun:a\n match-leak-kinds: definite\n}"),
              HasSubstr("a.supp:5: match-leak-kinds: stands once, between Memcheck:Leak and the frames"));
  EXPECT_THAT(Refused("{\n name\n Memcheck:Free\n match-leak-kinds: definite\n fun:free\n}"),
              HasSubstr("a.supp:4: match-leak-kinds: is of Memcheck:Leak"));
  EXPECT_THAT(Refused("{\n name\n Leak\n fun:a\n}"), HasSubstr("not TOOL:KIND"));
  std::string deep = "{\n name\n Memcheck:Leak\n";
  for (int i = 0; i < 25; ++i) deep += " fun:a\n";
  EXPECT_THAT(Refused(deep + "}"), HasSubstr("a.supp:28: more than 24 frames"));
  EXPECT_THAT(Refused("\n# c\nrace:foo\n"), HasSubstr("a.supp:3: neither Valgrind's"));
}

TEST(LsanSuppressionTest, MatchesAnyFrameByFunctionFileOrModule) {
  EXPECT_TRUE(Matches("leak:Load", kPlain.Seen()));
  EXPECT_TRUE(Matches("leak:ns::R", kPlain.Seen())) << "a part of the name";
  EXPECT_TRUE(Matches("leak:_ZN2ns", kPlain.Seen()));
  EXPECT_TRUE(Matches("leak:src/app.cc", kPlain.Seen()));
  EXPECT_TRUE(Matches("leak:/opt/", kPlain.Seen()));
  EXPECT_TRUE(Matches("# why\n\n  leak:ns::*(int)  \n", kPlain.Seen()));
  EXPECT_FALSE(Matches("leak:vgpreload", kPlain.Seen())) << "that is memcheck's file";
  EXPECT_FALSE(Matches("leak:Store", kPlain.Seen()));
}

TEST(LsanSuppressionTest, NamesThatOnlyValgrindHasMatchNothing) {
  const Frames unknown = {Named("Load"), Named("", "", ""), Main(), Below(), Named("_start")};
  for (const char* pattern : {"leak:below", "leak: main", "leak:main)", "leak:(below main)", "leak:??"}) {
    EXPECT_FALSE(Matches(pattern, unknown.Seen())) << pattern;
  }
  EXPECT_TRUE(Matches("leak:__libc_start_main", unknown.Seen()));
  EXPECT_TRUE(Matches(Valgrind("...\nfun:main\nfun:(below main)\nfun:(below main)"), unknown.Seen()));
  EXPECT_TRUE(Matches(Valgrind("...\nfun:(below*"), unknown.Seen()));
  EXPECT_TRUE(Matches(Valgrind("fun:malloc\nfun:Load\nfun:???"), unknown.Seen()));
}

TEST(LsanSuppressionTest, AnchorsAndStarsAreLeakSanitizers) {
  EXPECT_TRUE(TemplateMatches("^foo", "foobar"));
  EXPECT_FALSE(TemplateMatches("^bar", "foobar"));
  EXPECT_TRUE(TemplateMatches("bar$", "foobar"));
  EXPECT_FALSE(TemplateMatches("foo$", "foobar"));
  EXPECT_TRUE(TemplateMatches("^foobar$", "foobar"));
  EXPECT_TRUE(TemplateMatches("f*b*r", "foobar"));
  EXPECT_FALSE(TemplateMatches("f?o", "foobar")) << "? is a character like any other";
  EXPECT_TRUE(TemplateMatches("*", "x"));
  EXPECT_FALSE(TemplateMatches("*", "")) << "what is not known matches nothing";
}

TEST(LsanSuppressionTest, ErrorsNameFileAndLine) {
  EXPECT_THAT(Refused("leak:a\nrace:b\n"), HasSubstr("a.supp:2: \"race:b\" is not leak:PATTERN"));
  EXPECT_THAT(Refused("leak:a\n\nleak:\n"), HasSubstr("a.supp:3: a pattern that is empty"));
}

TEST(SuppressionsTest, TheFirstThatMatchesCounts) {
  Suppressions suppressions = Read(Valgrind("fun:calloc"));
  ASSERT_TRUE(suppressions.Add("leak:Load\nleak:main\n", "b.supp").ok());
  Suppression* match = suppressions.Match(LeakKind::kDefinite, kPlain.Seen());
  ASSERT_NE(match, nullptr);
  EXPECT_EQ(match->name, "Load");
  EXPECT_EQ(match->file, "b.supp");
}

TEST(SuppressionsTest, WildcardsGiveBackWhatTheyTook) {
  EXPECT_TRUE(WildcardMatches("a*b*c", "abxbyc"));
  EXPECT_TRUE(WildcardMatches("*.so*", "libx.so.1"));
  EXPECT_FALSE(WildcardMatches("a*b", "abc"));
  EXPECT_TRUE(WildcardMatches("", ""));
  EXPECT_FALSE(WildcardMatches("", "a"));
  EXPECT_FALSE(WildcardMatches("?", ""));
  // Quadratic at worst: a pattern from a file must not take forever.
  const std::string stars = absl::StrCat(std::string(2000, '*'), "b");
  EXPECT_FALSE(WildcardMatches(stars, std::string(20000, 'a')));
}

TEST(RuntimeSuppressionsTest, AreReadAndHideNothingThatIsLost) {
  Suppressions suppressions;
  ASSERT_TRUE(suppressions.Add(RuntimeSuppressions(), "built in").ok());
  EXPECT_GE(suppressions.all().size(), 10u);
  for (const Suppression& one : suppressions.all()) {
    EXPECT_FALSE(one.kinds.Has(LeakKind::kDefinite)) << one.name;
    EXPECT_FALSE(one.kinds.Has(LeakKind::kIndirect)) << one.name;
  }
  const Frames dtv = {Named("", "", "/lib64/ld-linux-x86-64.so.2", ""),
                      Named("pthread_create", "", "/lib/x86_64-linux-gnu/libc.so.6", ""), Main()};
  EXPECT_NE(suppressions.Match(LeakKind::kPossible, dtv.Seen(AllocFunction::kCalloc)), nullptr);
  EXPECT_EQ(suppressions.Match(LeakKind::kDefinite, dtv.Seen(AllocFunction::kCalloc)), nullptr);
  EXPECT_EQ(suppressions.Match(LeakKind::kPossible, kPlain.Seen()), nullptr);
}

TEST(RuntimeSuppressionsTest, WhatTheRuntimeRunsIsNotItsOwn) {
  const std::string libc = "/lib/x86_64-linux-gnu/libc.so.6", loader = "/lib64/ld-linux-x86-64.so.2";
  Suppressions suppressions;
  suppressions.AddBuiltIn();
  const auto matches = [&](std::initializer_list<Frame> frames) {
    return suppressions.Match(LeakKind::kReachable, Frames(frames).Seen()) != nullptr;
  };
  const Frame run = Named("_dlerror_run", "", libc), open = Named("dl_open_worker", "", loader);
  EXPECT_TRUE(matches({Named("_dl_exception_create", "", loader), open, run, Main()}));
  EXPECT_FALSE(matches({Named("plug_init", "", "/opt/plug.so"), open, run, Main()}));
  EXPECT_FALSE(matches({Named("init", "", "/usr/lib/libplug.so"), Named("call_init", "", loader), open, run, Main()}));
  // What a handler allocates is its program's, wherever that lies; and the kernel's frame is no resolver's.
  const Frame handled = Named("on_signal", "", "/usr/lib/postgresql/15/bin/postgres"), signal = Named("__restore_rt", "", libc);
  EXPECT_FALSE(matches({handled, signal, Main()}));
  EXPECT_FALSE(matches({handled, signal, open, run, Main()}));
  EXPECT_TRUE(matches({Named("__res_vinit", "", libc), Named("__resolv_conf_load", "", libc), Main()}));
  const std::string gobject = "/usr/lib/libgobject-2.0.so.0";
  const Frame types = Named("g_type_register_fundamental", "", gobject);
  EXPECT_TRUE(matches({Named("g_malloc0", "", "/usr/lib/libglib-2.0.so.0"), Named("", "", gobject), types, Main()}));
  EXPECT_FALSE(matches({Named("plug_init", "", "/opt/plug.so"), types, Main()}));
  // In a static program all is of one module.
  EXPECT_TRUE(matches({Named("_dl_exception_create"), Named("dl_open_worker"), Named("_dlerror_run"), Main()}));
  // Not so of a suppression of the user's.
  EXPECT_TRUE(Matches(Valgrind("fun:malloc\n...\nfun:_dlerror_run"),
                      Frames({Named("plug_init", "", "/opt/plug.so"), open, run, Main()}).Seen()));
}

// What libc keeps in a tsearch() tree is found by pointers into it; and its functions that call
// others keep no more than what is their own.
TEST(RuntimeSuppressionsTest, WhatLibcKeepsOfItsOwnFunctions) {
  const std::string libc = "/lib/x86_64-linux-gnu/libc.so.6";
  Suppressions suppressions;
  suppressions.AddBuiltIn();
  const auto matches = [&](LeakKind kind, std::initializer_list<absl::string_view> functions) {
    std::vector<Frame> frames;
    for (const absl::string_view function : functions)
      frames.push_back(Named(std::string(function), "", libc));
    frames.push_back(Main());
    std::vector<const Frame*> pointers;
    for (const Frame& frame : frames) pointers.push_back(&frame);
    return suppressions.Match(kind, AsMemcheckSees(AllocFunction::kMalloc, pointers)) != nullptr;
  };
  const auto possible_too = [&](std::initializer_list<absl::string_view> functions) {
    EXPECT_TRUE(matches(LeakKind::kReachable, functions));
    EXPECT_FALSE(matches(LeakKind::kDefinite, functions));
    return matches(LeakKind::kPossible, functions);
  };
  EXPECT_TRUE(possible_too({"tsearch", "__gconv_find_shlib", "find_module", "__gconv_open"}));
  EXPECT_FALSE(possible_too({"__gconv_open", "iconv_open"}));
  EXPECT_TRUE(possible_too({"tsearch", "__dcigettext", "strerror_l"}));
  EXPECT_TRUE(possible_too({"_nl_load_domain", "_nl_find_domain", "__dcigettext"}));
  EXPECT_TRUE(possible_too({"tsearch", "__nss_lookup_function", "gaih_inet", "getaddrinfo"}));
  EXPECT_TRUE(possible_too({"__pthread_attr_copy", "pthread_setattr_default_np"}));
  EXPECT_TRUE(possible_too({"__vasprintf_internal", "asprintf", "dlerror"}));
  EXPECT_FALSE(matches(LeakKind::kReachable, {"__vasprintf_internal", "asprintf"})) << "the program's";
  EXPECT_FALSE(
      matches(LeakKind::kReachable, {"__pthread_attr_extension", "pthread_attr_setaffinity_np"}));
  EXPECT_FALSE(possible_too({"getmntent"}));
  EXPECT_FALSE(possible_too({"allocate", "__libc_allocate_once_slow", "getmntent"}));
  EXPECT_FALSE(possible_too({"fcvt"}));
  EXPECT_FALSE(possible_too({"fstab_init", "setfsent"}));
  EXPECT_FALSE(possible_too({"getfsent"}));
  EXPECT_FALSE(
      matches(LeakKind::kReachable, {"__fopen_internal", "setmntent", "fstab_init", "setfsent"}))
      << "a stream that endfsent() was not called for";
}

TEST(RuntimeSuppressionsTest, WhatGObjectMakesWhenItIsLoaded) {
  const std::string loader = "/lib64/ld-linux-x86-64.so.2";
  Suppressions suppressions;
  suppressions.AddBuiltIn();
  const auto matches = [&](LeakKind kind, std::initializer_list<Frame> frames,
                           AllocFunction function = AllocFunction::kCalloc) {
    return suppressions.Match(kind, Frames(frames).Seen(function)) != nullptr;
  };
  const Frame make = Named("g_malloc0", "", "/usr/lib/libglib-2.0.so.0");
  const Frame glib = Named("", "", "/usr/lib/libglib-2.0.so.0");
  const Frame gobject = Named("", "", "/usr/lib/libgobject-2.0.so.0");
  for (const Frame& load : {Named("call_init", "", loader), Named("", "", loader)}) {
    for (const LeakKind kind : {LeakKind::kPossible, LeakKind::kReachable}) {
      EXPECT_TRUE(matches(kind, {make, gobject, gobject, load}));
      EXPECT_TRUE(matches(kind, {gobject, load}, AllocFunction::kPosixMemalign));
    }
    EXPECT_FALSE(matches(LeakKind::kDefinite, {make, gobject, gobject, load}));
    EXPECT_TRUE(matches(LeakKind::kReachable, {make, glib, load}));
    EXPECT_FALSE(matches(LeakKind::kPossible, {make, glib, load}));
    // What others make when they are loaded, by whatever function of it.
    const Frame plugin = Named("plug_init", "", "/usr/lib/libplug.so");
    EXPECT_FALSE(matches(LeakKind::kReachable, {make, gobject, plugin, load}));
    EXPECT_FALSE(matches(LeakKind::kReachable, {make, plugin, load}));
  }
  EXPECT_FALSE(matches(LeakKind::kReachable, {make, gobject, Main()}));
}

// memtrace report leaves out of its list what memtrace check does not fail for.
TEST(RuntimeSuppressionsTest, ReportMarksWhatIsPossiblyLostByThem) {
  MadeUp made_up;
  LeakScan scan;
  scan.number = 1;
  scan.state = LeakScan::State::kDone;
  const auto add = [&](LeakKind kind, const StackId stack) {
    made_up.AddSite(stack, 1, 304, 1);
    scan.records.push_back({.kind = kind, .stack = stack, .function = AllocFunction::kCalloc,
                            .bytes = 304, .blocks = 1});
    scan.totals[static_cast<size_t>(kind)].bytes += 304;
  };
  const StackId dtv = made_up.Stack({Libc("allocate_dtv"), Libc("_dl_allocate_tls"),
                                     Libc("pthread_create"), {"main", "a.c", 1}});
  add(LeakKind::kPossible, dtv);
  add(LeakKind::kPossible, made_up.Stack({{"Make", "a.c", 2}, {"main", "a.c", 1}}));
  add(LeakKind::kDefinite, dtv);
  made_up.analysis.leak_scans.push_back(scan);
  const render::ReportView view = made_up.View();
  MarkOfRuntime(view, &made_up.analysis.leak_scans[0]);
  const LeakScan& marked = made_up.analysis.leak_scans[0];
  EXPECT_TRUE(marked.records[0].of_runtime);
  EXPECT_FALSE(marked.records[1].of_runtime);
  EXPECT_FALSE(marked.records[2].of_runtime) << "what is lost for certain is nobody's by design";
  EXPECT_EQ(marked.of_runtime.bytes, 304u);
  EXPECT_EQ(marked.of_runtime.blocks, 1u);
}

// Names that memcheck has for the same code.
TEST(ValgrindSuppressionTest, NamesOfOneCodeStandForEachOther) {
  Frame get = Named("ns::S<int>::get(int)", "_ZN2ns1SIiE3getEi");
  get.inlined = true;
  const Frames frames = {get, Named("A::A()", "_ZN1AC2Ev"), Named("B::~B()", "_ZN1BD1Ev"), Named("f"),
                         Named("clone3", "", "/lib/x86_64-linux-gnu/libc.so.6", "")};
  const auto matches = [&](absl::string_view text) {
    return Matches(Valgrind(absl::StrCat("fun:malloc\n", text)), frames.Seen());
  };
  EXPECT_TRUE(matches("fun:get\nfun:_ZN1AC1Ev\nfun:_ZN1BD2Ev\nfun:f.constprop.0\nfun:clone"));
  EXPECT_TRUE(matches("fun:_ZN2ns1SIiE3getEi\nfun:_ZN1AC2Ev\nfun:_ZN1BD1Ev\nfun:f.2\nfun:clone3"));
  EXPECT_TRUE(matches("fun:*\nfun:*\nfun:*\nfun:f.part.0.isra.0"));
  EXPECT_FALSE(matches("fun:*\nfun:_ZN1AC3Ev"));
  EXPECT_FALSE(matches("fun:*\nfun:A"));
  EXPECT_FALSE(matches("fun:*\nfun:*\nfun:*\nfun:g.constprop.0"));
  const std::string text =
      SuppressionFor("n", "", AllocFunction::kMalloc, frames.pointers());
  EXPECT_THAT(text, HasSubstr("   ...\n   fun:_ZN1AC?Ev\n   fun:_ZN1BD?Ev\n   fun:f\n   fun:clone3*\n"));
  EXPECT_TRUE(Matches(text, frames.Seen()));
}

TEST(ValgrindSuppressionTest, ConstructorsThatAreTemplatesHaveTwoNamesToo) {
  const Frames frames = {Named("ns::S<int>::S<std::allocator<int>>(int, std::allocator<int> const&)",
                               "_ZN2ns1SIiLi1EEC1IS3_EEiRKT_"),
                         Named("D1E::D1E()", "_ZN3D1EC2Ev"), Main()};
  EXPECT_TRUE(Matches(Valgrind("fun:malloc\nfun:_ZN2ns1SIiLi1EEC2IS3_EEiRKT_\nfun:_ZN3D1EC1Ev"), frames.Seen()));
  EXPECT_FALSE(Matches(Valgrind("fun:malloc\nfun:*\nfun:_ZN3D2EC2Ev"), frames.Seen()));
  EXPECT_THAT(SuppressionFor("n", "", AllocFunction::kMalloc, frames.pointers()),
              HasSubstr("   fun:_ZN2ns1SIiLi1EEC?IS3_EEiRKT_\n   fun:_ZN3D1EC?Ev\n"));
}

TEST(ValgrindSuppressionTest, OfInlinedTemplatesTheArgumentsDoNotCount) {
  Frame node = Named("std::Tree<int, std::less<int>>::Create<std::piecewise_construct_t const&>(int)",
                     "_ZNSt4TreeIiSt4lessIiEE6CreateIRKSt21piecewise_construct_tEEvi");
  node.inlined = true;
  const Frames frames = {node, Main()};
  EXPECT_TRUE(Matches(Valgrind("fun:malloc\nfun:Create<const std::piecewise_construct_t&>"), frames.Seen()));
  EXPECT_TRUE(Matches(Valgrind("fun:malloc\nfun:Create<>"), frames.Seen()));
  EXPECT_FALSE(Matches(Valgrind("fun:malloc\nfun:Make<>"), frames.Seen()));
  node.inlined = false;
  const Frames called = {node, Main()};
  EXPECT_FALSE(Matches(Valgrind("fun:malloc\nfun:Create<>"), called.Seen()));
}

// The * of a pointer is a wildcard to Valgrind, which writes it all the same.
TEST(ValgrindSuppressionTest, APointerAmongTemplateArgumentsIsNoWildcard) {
  const auto matches = [](std::string function, absl::string_view pattern) {
    Frame inlined = Named(std::move(function), "_Z1x");
    inlined.inlined = true;
    const Frames frames = {inlined, Main()};
    return Matches(Valgrind(absl::StrCat("fun:malloc\nfun:", pattern, "\nfun:main")),
                   frames.Seen());
  };
  const std::string string =
      "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
  EXPECT_TRUE(matches("void* buffer_for<unsigned long*>(unsigned long*)",
                      "buffer_for<long unsigned int*>"));
  EXPECT_TRUE(matches("char* buffer_for<" + string + "*>(" + string + "*)",
                      "buffer_for<std::__cxx11::basic_string<char>*>"));
  EXPECT_TRUE(matches(string + "* std::__uninitialized_fill_n<false>::__uninit_fill_n<" + string +
                          "*, unsigned long, " + string + " >(" + string + "*, unsigned long)",
                      "__uninit_fill_n<std::__cxx11::basic_string<char>*, long unsigned int, "
                      "std::__cxx11::basic_string<char> >"));
  EXPECT_TRUE(
      matches("void* ns::member2<void (ns::S::*)(B<void ()>*)>(void (ns::S::*)(B<void ()>*))",
              "member2<void (ns::S::*)(B<void()>*)>"));
  EXPECT_TRUE(matches("void* ns::fn<B<void ()>* (*)(int)>(B<void ()>* (*)(int))",
                      "fn<B<void()>* (*)(int)>"));
  EXPECT_TRUE(matches("void* of<unsigned long S::*>(unsigned long S::*)",
                      "of<long unsigned int S::*>"));
  EXPECT_FALSE(matches("void* other<unsigned long*>(unsigned long*)",
                       "buffer_for<long unsigned int*>"));
}

// What is meant as a wildcard matches what it did.
TEST(ValgrindSuppressionTest, WildcardsAmongTemplateArgumentsStay) {
  Frame inlined = Named("void* ns::of<std::Map<int>*>(std::Map<int>*)", "_Z1x");
  inlined.inlined = true;
  const Frames frames = {inlined, Main()};
  const auto matches = [&](absl::string_view pattern) {
    return Matches(Valgrind(absl::StrCat("fun:malloc\nfun:", pattern)), frames.Seen());
  };
  EXPECT_TRUE(matches("of<*>"));
  EXPECT_TRUE(matches("of<std::*>"));
  EXPECT_TRUE(matches("o?<std::Map<int>*>"));
  EXPECT_TRUE(matches("*<std::Map<int>*>"));
  EXPECT_FALSE(matches("of<*Set*>"));
  EXPECT_FALSE(matches("of<int, ns::*>")) << "no member's pointer";
  EXPECT_FALSE(matches("of<const ns::*>"));
  // A pointer, or a wildcard: what has no pointer is not meant.
  const auto matches_map = [&](absl::string_view pattern) {
    Frame map = Named("void* ns::of<Map>(Map*)", "_Z1x");
    map.inlined = true;
    const Frames of_map = {map, Main()};
    return Matches(Valgrind(absl::StrCat("fun:malloc\nfun:", pattern)), of_map.Seen());
  };
  EXPECT_FALSE(matches_map("of<Set*>"));
  EXPECT_TRUE(matches_map("of<Map*>")) << "as a wildcard";
  EXPECT_FALSE(matches("of<boost::*>"));
  EXPECT_FALSE(matches("o?<std::Set<int>*>"));
  EXPECT_FALSE(matches("*<std::Set<int>*>"));
}

// As Valgrind writes the stack of a static constructor.
TEST(ValgrindSuppressionTest, WhatRunsStaticConstructors) {
  const Frames frames = {Named("S::S()", "_ZN1SC2Ev"), Named("call_init"),
                         Named("__libc_start_main_impl", "", "/lib/x86_64-linux-gnu/libc.so.6", ""),
                         Named("_start")};
  EXPECT_TRUE(Matches(Valgrind("fun:malloc\nfun:_ZN1SC1Ev\nfun:call_init\n"
                               "fun:__libc_start_main@@GLIBC_2.34\nfun:(below main)"), frames.Seen()));
  EXPECT_TRUE(Matches(Valgrind("fun:malloc\n...\nfun:call_init\nfun:(below main)"), frames.Seen()));
}

TEST(ValgrindSuppressionTest, AlignedAllocationIsMemalign) {
  for (const AllocFunction function : {AllocFunction::kAlignedAlloc, AllocFunction::kMemalign,
                                       AllocFunction::kValloc, AllocFunction::kPvalloc}) {
    EXPECT_TRUE(Matches(Valgrind("fun:memalign\nfun:Load"), kPlain.Seen(function)));
    const std::string text = SuppressionFor("n", "", function, kPlain.pointers());
    EXPECT_THAT(text, HasSubstr("fun:*align*\n   ...\n   fun:Load\n"));
    EXPECT_TRUE(Matches(text, kPlain.Seen(function)));
  }
  EXPECT_TRUE(Matches(Valgrind("fun:aligned_alloc\nfun:Load"), kPlain.Seen(AllocFunction::kAlignedAlloc)));
  EXPECT_TRUE(Matches(Valgrind("fun:memalign\nfun:posix_memalign\nfun:Load"),
                      kPlain.Seen(AllocFunction::kPosixMemalign)));
}

TEST(GeneratedSuppressionTest, MatchesItsStackAndIsReadBack) {
  Frame inlined = Named("ns::Inner()", "_ZN2ns5InnerEv");
  inlined.inlined = true;
  const Frames frames = {inlined, Named("ns::Run(int)", "_ZN2ns3RunEi"),
                         Named("", "", "/opt/lib x.so", ""), Main(), Below()};
  const std::string text =
      SuppressionFor("app 1234\n", "definite", AllocFunction::kCalloc, frames.pointers());
  EXPECT_EQ(text,
            "{\n   app 1234?\n   Memcheck:Leak\n   match-leak-kinds: definite\n   fun:calloc\n"
            "   ...\n   fun:_ZN2ns3RunEi\n   obj:/opt/lib x.so\n   fun:main\n}\n");
  EXPECT_TRUE(Matches(text, frames.Seen(AllocFunction::kCalloc)));
  EXPECT_FALSE(Matches(text, frames.Seen(AllocFunction::kMalloc)));
}

// Both tools pass over lines that begin with #.
TEST(GeneratedSuppressionTest, TheNameIsNoComment) {
  for (const char* name : {"#h 1234 main", " #h 1234 main"}) {
    const std::string text = SuppressionFor(name, "definite", AllocFunction::kMalloc, kPlain.pointers());
    EXPECT_THAT(text, StartsWith("{\n   ./")) << name;
    EXPECT_TRUE(Matches(text, kPlain.Seen())) << name;
    EXPECT_THAT(SuppressionForFree(name, "free", kPlain.pointers()), StartsWith("{\n   ./")) << name;
  }
}

TEST(GeneratedSuppressionTest, AllowsForWhatMemcheckSeesOfTheAllocator) {
  const Frames frames = {Named("operator new(unsigned long)", "_Znwm"), Main()};
  EXPECT_THAT(SuppressionFor("n", "", AllocFunction::kMalloc, frames.pointers()),
              HasSubstr("Memcheck:Leak\n   fun:_Zn?m\n   fun:main\n}"));
  const std::string realloc =
      SuppressionFor("n", "", AllocFunction::kRealloc, kPlain.pointers());
  EXPECT_THAT(realloc, HasSubstr("   fun:*alloc\n   fun:Load\n"));
  EXPECT_TRUE(Matches(realloc, kPlain.Seen(AllocFunction::kRealloc)));
}

// LLVM adds to the symbols of functions that it shares between units, and memcheck reads those.
TEST(GeneratedSuppressionTest, OfRustWhatSymbolsHaveBehindTheNameMayBeThere) {
  const std::string old = "_ZN3std4sync4mpmc4Make17h0123456789abcdefE";
  const std::string newer = "_RNvC3two4push";
  const Frames frames = {Named("std::sync::mpmc::Make", old), Named("two::push", newer),
                         Named("two::main", "_ZN3two4mainEv"), Main()};
  const std::string text = SuppressionFor("n", "", AllocFunction::kMalloc, frames.pointers());
  EXPECT_THAT(text, HasSubstr(absl::StrCat("   fun:", old, "*\n   fun:", newer,
                                           "*\n   fun:_ZN3two4mainEv\n   fun:main\n}")));
  EXPECT_TRUE(Matches(text, frames.Seen()));
  const Frames of_symbols = {Named("std::sync::mpmc::Make", old + ".llvm.8919339176786301441"),
                             Named("two::push", newer + ".llvm.1"),
                             Named("two::main", "_ZN3two4mainEv"), Main()};
  EXPECT_TRUE(Matches(text, of_symbols.Seen()));
  EXPECT_THAT(SuppressionForFree("n", "free", frames.pointers()),
              HasSubstr(absl::StrCat("   fun:free\n   fun:", old, "*\n")));
}

// A function of the program may be called as libc's that start threads are.
TEST(GeneratedSuppressionTest, AProgramsOwnCloneIsAFrameLikeOthers) {
  std::vector<Frame> stack = {Named("node_new"), Named("clone"), Named("start_thread"), Named("use"), Main(), Below()};
  for (Frame& frame : stack) frame.role = names::RoleOf(frame, 0);
  const Frames frames = {stack[0], stack[1], stack[2], stack[3], stack[4], stack[5]};
  const std::string text = SuppressionFor("n", "", AllocFunction::kMalloc, frames.pointers());
  EXPECT_THAT(text, HasSubstr("   fun:node_new\n   fun:clone\n   fun:start_thread\n   fun:use\n   fun:main\n}"));
  EXPECT_TRUE(Matches(text, frames.Seen()));
}

// Inlined, its last name is all that Valgrind has.
TEST(ValgrindSuppressionTest, TheLastNameOfAFunctionWithAnArrowIsFound) {
  Frame get = Named("m::run<decltype ((a)->b)>(int)", "_Z1x");
  get.inlined = true;
  const Frames frames = {get, Main()};
  EXPECT_TRUE(Matches(Valgrind("fun:malloc\nfun:run<decltype ((a)->b)>\nfun:main"), frames.Seen()));
}

}  // namespace
}  // namespace memtrace::report::suppress
