#include "report/names/frames_filter.h"
#include "report/names/function_name.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "format/records.h"

namespace memtrace::report::names {
namespace {

TEST(QualifiedNameTest, DropsReturnTypeAndParameters) {
  EXPECT_EQ(QualifiedName("main"), "main");
  EXPECT_EQ(QualifiedName("foo(int, char*)"), "foo");
  EXPECT_EQ(QualifiedName("void std::vector<int, std::allocator<int> >::_M_realloc_insert<int "
                          "const&>(__gnu_cxx::__normal_iterator<int*, std::vector<int> >)"),
            "std::vector<int, std::allocator<int> >::_M_realloc_insert<int const&>");
  EXPECT_EQ(QualifiedName("(anonymous namespace)::Cache::Grow() const"),
            "(anonymous namespace)::Cache::Grow");
  EXPECT_EQ(QualifiedName("std::unique_ptr<Foo> make_foo<int>(int)"), "make_foo<int>");
  EXPECT_EQ(QualifiedName("main::{lambda(int)#1}::operator()(int) const"),
            "main::{lambda(int)#1}::operator()");
  EXPECT_EQ(QualifiedName("decltype (x.y()) get<int>(int)"), "get<int>");
  EXPECT_EQ(QualifiedName("app::Parse(int, void (*)(int))::Local::Grow(int)"),
            "app::Parse(int, void (*)(int))::Local::Grow");
  EXPECT_EQ(QualifiedName("void app::Run<int>(int) const::{lambda(int)#2}::operator()(int) const"),
            "app::Run<int>(int) const::{lambda(int)#2}::operator()");
  EXPECT_EQ(QualifiedName("f(int"), "f");
  EXPECT_EQ(QualifiedName("ns::f [clone .llvm.77]"), "ns::f");
}

// What they return is told around them.
TEST(QualifiedNameTest, FindsFunctionsWithinWhatTheyReturn) {
  EXPECT_EQ(QualifiedName("int (&ns::f(char)) [10]"), "ns::f");
  EXPECT_EQ(QualifiedName("char const (&ns::S::f<a::B>(char (*)(int)) const) [4]"),
            "ns::S::f<a::B>");
  EXPECT_EQ(QualifiedName("void (*f(char))(int)"), "f");
  EXPECT_EQ(QualifiedName("int (* (&f(char)) [4])(long)"), "f");
  EXPECT_EQ(QualifiedName("int (a::S::*b::f(char))(long) const"), "b::f");
  EXPECT_EQ(QualifiedName("decltype (*{parm#1}) f<int*>(int*)"), "f<int*>");
}

// The '>' of an arrow closes nothing.
TEST(QualifiedNameTest, KnowsArrows) {
  EXPECT_EQ(QualifiedName("decltype (((factory)->create)(n)) app::make<app::Factory>(app::Factory*, int)"),
            "app::make<app::Factory>");
  EXPECT_EQ(QualifiedName("decltype((factory)->create(n)) app::make<app::Factory>(app::Factory*, int)"),
            "app::make<app::Factory>");
  EXPECT_EQ(QualifiedName("decltype ({parm#1}->create({parm#2})) app::make<app::Factory>(app::Factory*, int)"),
            "app::make<app::Factory>");
  EXPECT_EQ(QualifiedName("m::cache_it::<fn() -> std::path::PathBuf>"), "m::cache_it::<fn() -> std::path::PathBuf>");
  EXPECT_EQ(QualifiedName("m::run::<fn(u8) -> u8>::{closure#0}"), "m::run::<fn(u8) -> u8>::{closure#0}");
  EXPECT_EQ(WithoutTemplates("m::cache_it<fn() -> std::path::PathBuf>::get"), "m::cache_it::get");
  EXPECT_EQ(WithoutTemplates("a<b<int> >::c<(d->e)>"), "a::c");
  EXPECT_EQ(QualifiedName("main.leak!(int).leak(int)"), "main.leak!(int).leak");
}

TEST(QualifiedNameTest, KnowsOperators) {
  EXPECT_EQ(QualifiedName("operator new(unsigned long)"), "operator new");
  EXPECT_EQ(QualifiedName("operator new[](unsigned long, std::align_val_t)"), "operator new[]");
  EXPECT_EQ(QualifiedName("std::ostream& std::operator<< <char>(std::ostream&, char)"),
            "std::operator<< <char>");
  EXPECT_EQ(QualifiedName("Foo::operator()(int)"), "Foo::operator()");
  EXPECT_EQ(QualifiedName("my_operator(int)"), "my_operator");
  EXPECT_EQ(QualifiedName("operators::run(int)"), "operators::run");
  EXPECT_EQ(QualifiedName("main::{lambda()#1}::operator()() const::{lambda(int)#1}::operator()(int) const"),
            "main::{lambda()#1}::operator()() const::{lambda(int)#1}::operator()");
  EXPECT_EQ(QualifiedName("std::string a::operator std::string<int>() const"), "a::operator std::string<int>");
  EXPECT_EQ(QualifiedName("bool A::operator!() const"), "A::operator!");
  EXPECT_EQ(QualifiedName("int A::operator->*<int>(int)"), "A::operator->*<int>");
  EXPECT_EQ(QualifiedName("int A::operator()<int (*)(char)>(int (*)(char)) const"),
            "A::operator()<int (*)(char)>");
  EXPECT_EQ(QualifiedName("bool A::operator==<(anonymous namespace)::B>(B const&)"),
            "A::operator==<(anonymous namespace)::B>");
  EXPECT_EQ(QualifiedName("int ns::operator\"\" _q<(char)49>()"), "ns::operator\"\" _q<(char)49>");
  EXPECT_EQ(QualifiedName("A::operator<"), "A::operator<");
  EXPECT_EQ(QualifiedName("A::operator<<[abi:cxx11](int)"), "A::operator<<[abi:cxx11]");
}

// Names as __cxa_demangle() writes them: the brackets are of the type.
TEST(QualifiedNameTest, KnowsConversions) {
  EXPECT_EQ(QualifiedName("A::operator bool() const"), "A::operator bool");
  EXPECT_EQ(QualifiedName("A::operator std::function<void (int)>()"),
            "A::operator std::function<void (int)>");
  EXPECT_EQ(QualifiedName("A::operator int (*)(T)() const"), "A::operator int (*)(T)");
  EXPECT_EQ(QualifiedName("A::operator int (*)()() const [clone .cold]"), "A::operator int (*)()");
  EXPECT_EQ(QualifiedName("A::operator int (*(*)(char))(long)()"),
            "A::operator int (*(*)(char))(long)");
  EXPECT_EQ(QualifiedName("A::operator int (B::*)(long) const() const"),
            "A::operator int (B::*)(long) const");
  EXPECT_EQ(QualifiedName("A::operator int (&) [3]()"), "A::operator int (&) [3]");
  EXPECT_EQ(QualifiedName("A::operator float __vector(4)()"), "A::operator float __vector(4)");
  EXPECT_EQ(QualifiedName("A::operator (anonymous namespace)::B*()"),
            "A::operator (anonymous namespace)::B*");
  EXPECT_EQ(QualifiedName("A::operator int (*)(T)<int (*)(T)>()"),
            "A::operator int (*)(T)<int (*)(T)>");
  EXPECT_EQ(QualifiedName("f()::{lambda(int)#1}::operator int (*)(int)() const"),
            "f()::{lambda(int)#1}::operator int (*)(int)");
  EXPECT_EQ(QualifiedName("A::operator int (*)(T)() const::{lambda(int)#1}::operator()(int) const"),
            "A::operator int (*)(T)() const::{lambda(int)#1}::operator()");
  EXPECT_EQ(QualifiedName("A::operator int (*)(T)"), "A::operator int (*)(T)");
  EXPECT_EQ(QualifiedName("A::operator int (*"), "A::operator int ");
  EXPECT_EQ(LastName("A::operator int (*)(T)"), "operator int (*)(T)");
  EXPECT_EQ(LastName("A::operator (anonymous namespace)::B*"),
            "operator (anonymous namespace)::B*");
  EXPECT_EQ(LastName("A::operator int (*)(T)() const::{lambda(int)#1}::operator()"), "operator()");
}

// As Go's linker writes them.
TEST(QualifiedNameTest, KnowsMethodsOfGo) {
  for (const char* name :
       {"main.(*T).Method", "main.(*T).Run.func1.1", "main.(*T).Method-fm", "main.T.Value",
        "vendor/pkg.(*Conn).Do", "main.(*Cache[...]).Get", "main.Map[go.shape.int_0]",
        "main.Map[go.shape.int_0,go.shape.func(int) error_1].func1",
        "main.Map[go.shape.struct { main.x int; main.y chan<- int }_0]"}) {
    EXPECT_EQ(QualifiedName(name), name);
  }
  EXPECT_EQ(QualifiedName("a[b(int)"), "a[b");
}

TEST(QualifiedNameTest, KnowsWhatIsInAFunctionOfD) {
  EXPECT_EQ(QualifiedName("app.S.f(int).g(int)"), "app.S.f(int).g");
  EXPECT_EQ(QualifiedName("app.S.k() const.h()"), "app.S.k() const.h");
  EXPECT_EQ(QualifiedName("app.C!(int).C.sh() shared.q() shared"), "app.C!(int).C.sh() shared.q");
  EXPECT_EQ(QualifiedName("app.main().__lambda7!(int).__lambda7(int)"),
            "app.main().__lambda7!(int).__lambda7");
  EXPECT_EQ(QualifiedName("app.f(int, ...)"), "app.f");
  EXPECT_EQ(QualifiedName("ns::f(int).part.0"), "ns::f") << "a clone of C++";
}

TEST(QualifiedNameTest, KnowsNamesOfOtherLanguages) {
  EXPECT_EQ(QualifiedName("-[NSString initWithFormat:locale:]"),
            "-[NSString initWithFormat:locale:]");
  EXPECT_EQ(QualifiedName("+[NSString(Paths) at:]"), "+[NSString(Paths) at:]");
  EXPECT_EQ(QualifiedName("hash_map.HashMap(u32,str).put"), "hash_map.HashMap(u32,str).put")
      << "Zig";
  EXPECT_EQ(QualifiedName("static main.Foo.make(_: Swift.String) -> main.Foo"), "main.Foo.make");
  EXPECT_EQ(QualifiedName("main.(foo in _AB12)(x: Swift.Int) -> ()"), "main.(foo in _AB12)");
  EXPECT_EQ(QualifiedName("<[u8; 4] as a::Tr>::go::{closure#0}"),
            "<[u8; 4] as a::Tr>::go::{closure#0}");
  for (const char* mangled : {"x__pk__Oadd.193", "camlM__$2b_81", "camlM__List.map_48",
                              "__mm_MOD_put", "$s4main3FooV3baryyF", "lists:map/2"}) {
    EXPECT_EQ(QualifiedName(mangled), mangled);
  }
}

TEST(LastNameTest, HasNoScopes) {
  EXPECT_EQ(LastName("main"), "main");
  EXPECT_EQ(LastName("ns::S<a::B>::get"), "get");
  EXPECT_EQ(LastName("(anonymous namespace)::Cache::Grow"), "Grow");
  EXPECT_EQ(LastName("app::Run(a::B) const::{lambda(c::D)#2}::operator()"), "operator()");
  EXPECT_EQ(LastName("app::main::{lambda(c::D)#2}"), "{lambda(c::D)#2}");
  EXPECT_EQ(LastName("Text::operator std::string"), "operator std::string");
  EXPECT_EQ(LastName("a::operator<<"), "operator<<");
  EXPECT_EQ(LastName("a::operators"), "operators");
  EXPECT_EQ(LastName("a::operator()::{lambda}::operator()"), "operator()");
  EXPECT_EQ(LastName("a::operator()() const::{lambda()#1}"), "{lambda()#1}");
  EXPECT_EQ(LastName("a::b<c::d"), "b<c::d");
  EXPECT_EQ(LastName("a::"), "");
  EXPECT_EQ(LastName(""), "");
}

TEST(WithoutTemplatesTest, KeepsWhatIsNone) {
  EXPECT_EQ(WithoutTemplates("std::map<a, b<c> >::insert<d>"), "std::map::insert");
  EXPECT_EQ(WithoutTemplates("a::operator<"), "a::operator<");
  EXPECT_EQ(WithoutTemplates("a::operator->"), "a::operator->");
  EXPECT_EQ(WithoutTemplates("a::operator-><int>"), "a::operator->");
  EXPECT_EQ(WithoutTemplates("a::operator<=><int>"), "a::operator<=>");
  EXPECT_EQ(WithoutTemplates("my_operator<int>"), "my_operator");
  EXPECT_EQ(WithoutTemplates("a<b"), "a<b");
}

// The page reads the list as well (tests/web/short_name.test.mjs).
TEST(ShortenedNameTest, IsWhatTheListSays) {
  std::ifstream list(MEMTRACE_SOURCE_DIR "/tests/report/names/short_names.txt");
  size_t names = 0;
  for (std::string line; std::getline(list, line);) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) continue;  // a comment
    EXPECT_EQ(ShortenedName(line.substr(0, tab)), line.substr(tab + 1)) << line;
    ++names;
  }
  EXPECT_GT(names, 10u);
}

TEST(ShortenedNameTest, ReadsAnyBytes) {
  for (const char* name :
       {"", "(", ")", "<", ">", "{", "{)(}", "{(", "operator", "operator(", "((((", ">>>>", "a<b(c",
        "f(::", "f()::(", "!(", "(anonymous namespace)", "operator()::", ".(", "a[", "a[(",
        "operator int (*", "operator int (*)(", "operator  (", "operator new[", "operator (a)::b"}) {
    EXPECT_LE(ShortenedName(name).size(), std::string(name).size() + 4) << name;
  }
}

TEST(QualifiedNameTest, SurvivesAnyBytes) {
  for (const char* name : {"", "(", ")", "<", ">", "operator", "operator(", "((((", ">>>>",
                           "a<b(c", "decltype(", "!(", "->", "a->b<", "operator->(", "(->", "<-><", "(anonymous namespace)", "operator()"}) {
    EXPECT_TRUE(absl::StrContains(name, QualifiedName(name))) << name << ": it is a part of it";
  }
}

Frame Of(std::string function, std::string module = "/work/app") {
  Frame frame;
  frame.function = std::move(function);
  frame.module = std::move(module);
  return frame;
}

TEST(RoleTest, TellsAllocatorsFromTheirCallers) {
  for (const char* name : {"malloc", "calloc@plt", "operator new(unsigned long)", "xmalloc",
                           "xmalloc.part.0", "g_malloc0", "sqlite3MemMalloc", "strdup",
                           "__gmp_default_allocate", "monoeg_malloc0",
                           "std::allocator<int>::allocate(unsigned long)",
                           "__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)",
                           "void std::vector<int>::push_back(int const&)",
                           "<rs::Counting as core::alloc::global::GlobalAlloc>::alloc"}) {
    EXPECT_EQ(RoleOf(Of(name), 0), FrameRole::kAllocator) << name;
  }
  for (const char* name : {"main", "leak_malloc", "my_xmalloc_user", "Pool::allocate(int)",
                           "std_like()", "malloc_stats_user",
                           "std::vector<int> make<int>(int)"}) {  // it returns a std:: type
    EXPECT_EQ(RoleOf(Of(name), 0), FrameRole::kProject) << name;
  }
}

TEST(RoleTest, RustsLibraryAllocatesForItsCallers) {
  const auto role = [](const char* function, bool by_linkage_name) {
    Frame frame = Of(function);
    (by_linkage_name ? frame.linkage_name : frame.file) =
        by_linkage_name ? "_RNvNtCslNYArtu3iFV_5alloc5alloc5alloc" : "/work/app/src/main.rs";
    return RoleOf(frame, format::kModuleExecutable);
  };
  for (const bool by_linkage_name : {false, true}) {
    for (const char* name : {"alloc::alloc::alloc", "<alloc::vec::Vec<u8>>::push", "<[u8]>::to_vec::<T>",
                             "<&str as alloc::string::ToString>::to_string", "hashbrown::raw::RawTable::grow",
                             "<T as alloc::slice::hack::ConvertVec>::to_vec", "std::thread::spawn::<app::Run>",
                             // Of types of the program, by what only the library can write.
                             "<[app::X]>::to_vec", "<app::X as alloc::slice::hack::ConvertVec>::to_vec::<A>",
                             "<[app::X]>::sort_by::<app::sorted::{closure#0}>", "<*const app::X>::read",
                             "<(app::X, u8) as core::clone::Clone>::clone", "<[&str]>::join::<&str>",
                             "<alloc::vec::Vec<app::X> as alloc::vec::spec_from_iter::SpecFromIter<app::X, "
                             "core::iter::adapters::map::Map<app::I, fn(u8) -> app::X>>>::from_iter"}) {
      EXPECT_EQ(role(name, by_linkage_name), FrameRole::kAllocator) << name;
    }
    for (const char* name : {"app::main", "<app::Pool as core::iter::Iterator>::next", "allocate::get",
                             "<app::Pool>::get", "<&mut app::Pool as alloc::Take>::take",
                             "<u8 as app::Count>::count", "<[T] as app::Named>::nm",
                             "<alloc::vec::Vec<u8> as app::Grow>::grow", "<(u8, u8) as app::Named>::nm",
                             "<app::X as core::clone::Clone>::clone"}) {
      EXPECT_EQ(role(name, by_linkage_name), FrameRole::kProject) << name;
    }
  }
  EXPECT_EQ(RoleOf(Of("core::Pool::get(int)"), 0), FrameRole::kProject) << "of C++";
}

// Where the source is known, it says more than the name.
TEST(RoleTest, WhatIsInTheSourcesOfRustsLibraryIsOfIt) {
  const auto role = [](const char* function, const char* file) {
    Frame frame = Of(function);
    frame.linkage_name = "_RNvNtCslNYArtu3iFV_5alloc5alloc5alloc";
    frame.file = file;
    return RoleOf(frame, format::kModuleExecutable);
  };
  const char* const name = "<app::I as core::iter::traits::iterator::Iterator>::collect::<alloc::vec::Vec<u8>>";
  for (const char* file : {"/rustc/9fc6b431/library/core/src/iter/traits/iterator.rs",
                           "/root/.rustup/toolchains/x/lib/rustlib/src/rust/library/core/src/iter/mod.rs",
                           "/rust/deps/hashbrown-0.15.2/src/raw/mod.rs",
                           "/usr/src/rustc-1.63.0/library/core/src/iter/mod.rs"}) {
    EXPECT_EQ(role(name, file), FrameRole::kAllocator) << file;
  }
  for (const char* file : {"/work/app/src/main.rs", "", "/rustc/app/src/main.rs", "/work/library/src/main.rs"}) {
    EXPECT_EQ(role(name, file), FrameRole::kProject) << file;
  }
}

TEST(RoleTest, TellsTheSystemFromTheProject) {
  EXPECT_EQ(RoleOf(Of("fopen", "/lib/x86_64-linux-gnu/libc.so.6"), 0), FrameRole::kSystem);
  EXPECT_EQ(RoleOf(Of("run", "/opt/app/libengine.so"), 0), FrameRole::kProject);
  EXPECT_EQ(RoleOf(Of("xmlNew", "/usr/bin/../lib/x86_64-linux-gnu/inkscape/../libxml2.so.2"), 0), FrameRole::kSystem);
  EXPECT_EQ(RoleOf(Of("run", "/usr/lib/../../opt/app/libengine.so"), 0), FrameRole::kProject);
  EXPECT_EQ(RoleOf(Of("run", "/usr/lib/app/app"), format::kModuleExecutable),
            FrameRole::kProject);
  EXPECT_EQ(RoleOf(Of("hook", "/opt/libmemtrace.so"), format::kModuleTracer),
            FrameRole::kAllocator);
  EXPECT_EQ(RoleOf(Of("void std::__invoke_impl<void, void (*)()>(std::__invoke_other)"), 0),
            FrameRole::kInvoker);
  EXPECT_EQ(RoleOf(Of("__libc_start_main_impl", "/lib/libc.so.6"), 0), FrameRole::kStart);
  EXPECT_EQ(RoleOf(Of("_start"), format::kModuleExecutable), FrameRole::kStart);
  for (const char* name : {"start_thread", "clone", "thread_start"}) {
    for (const char* module : {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libpthread.so.0",
                               "/lib/libc-2.31.so", "/lib/ld-musl-x86_64.so.1"}) {
      EXPECT_EQ(RoleOf(Of(name, module), 0), FrameRole::kStart) << name << " " << module;
    }
    EXPECT_EQ(RoleOf(Of(name), format::kModuleExecutable), FrameRole::kProject) << name;
    EXPECT_EQ(RoleOf(Of(name, "/opt/libgit.so"), 0), FrameRole::kProject) << name;
  }
}

class CutTest : public testing::Test {
 protected:
  void Add(std::string function, FrameRole role) {
    Frame frame = Of(std::move(function));
    frame.role = role;
    frames_.push_back(std::move(frame));
  }
  Cut Result() {
    std::vector<const Frame*> stack;
    for (const Frame& frame : frames_) stack.push_back(&frame);
    return CutStack(stack);
  }
  std::vector<Frame> frames_;
};

TEST_F(CutTest, LeavesOutAllocatorsAndStart) {
  Add("operator new", FrameRole::kAllocator);
  Add("std::vector::push_back", FrameRole::kAllocator);
  Add("fill", FrameRole::kProject);
  Add("std::sort", FrameRole::kAllocator);
  Add("main", FrameRole::kProject);
  Add("__libc_start_main", FrameRole::kStart);
  Add("_start", FrameRole::kStart);
  const Cut cut = Result();
  EXPECT_EQ(cut.begin, 2u);
  EXPECT_EQ(cut.via, 1u) << "what of std it called";
  EXPECT_EQ(cut.end, 5u) << "std:: between frames of the project stays";
  EXPECT_EQ(cut.caller, 2u);
}

// A library without debug information has names for what it exports.
TEST_F(CutTest, PartsOfAnAllocatorThatHaveNoNamesAreLeftOut) {
  const char* const glib = "/usr/lib/x86_64-linux-gnu/libglib-2.0.so.0";
  const auto add = [&](const char* function, const char* module, FrameRole role) {
    Add(function, role);
    frames_.back().module = module;
  };
  const auto slice = [&](const char* nameless, const char* caller) {
    frames_.clear();
    add("", nameless, FrameRole::kSystem);
    add("", glib, FrameRole::kSystem);
    add("g_slice_alloc", glib, FrameRole::kAllocator);
    add("g_slice_alloc0", glib, FrameRole::kAllocator);
    add("", caller, FrameRole::kSystem);
    add("g_hash_table_new", glib, FrameRole::kSystem);
    add("main", "/work/app", FrameRole::kProject);
    return Result().begin;
  };
  EXPECT_EQ(slice(glib, glib), 4u) << "its caller is no allocator";
  EXPECT_EQ(slice("/usr/lib/libother.so", glib), 0u) << "called by it, and not a part of it";
  EXPECT_EQ(slice("", glib), 0u);
  // std's functions call back: that is the program's function.
  frames_.clear();
  add("", "/work/libown.so", FrameRole::kProject);
  add("std::_Function_handler<void ()>::_M_invoke", "/work/libown.so", FrameRole::kAllocator);
  add("run", "/work/libown.so", FrameRole::kProject);
  EXPECT_EQ(Result().begin, 0u);
}

// An operator new of the program's own, however it came to malloc.
TEST_F(CutTest, WhatAnOperatorNewCallsIsAPartOfIt) {
  const auto begin = [&](const std::vector<std::string>& functions) {
    frames_.clear();
    for (const std::string& function : functions) {
      const bool allocator = function == "malloc" || function.starts_with("std::") || function.starts_with("operator new");
      Add(function, allocator ? FrameRole::kAllocator : FrameRole::kProject);
      if (function == "operator new(unsigned int)") frames_.back().module = "/usr/lib/libstdc++.so.6";
    }
    return Result().begin;
  };
  EXPECT_EQ(begin({"malloc", "(anonymous namespace)::Allocate(unsigned long)", "operator new[](unsigned long)", "user", "main"}), 3u);
  EXPECT_EQ(begin({"Pool::Take()", "Track", "Track", "Track", "operator new(unsigned long)", "std::vector<int>::reserve", "user"}), 6u);
  EXPECT_EQ(begin({"malloc", "a", "b", "c", "d", "e", "operator new(unsigned long)", "user"}), 1u) << "too far";
  EXPECT_EQ(begin({"malloc", "a", "std::sort", "user"}), 1u);
  EXPECT_EQ(begin({"malloc", "handler", "operator new(unsigned int)", "user"}), 1u) << "that of libstdc++ has a new-handler";
  EXPECT_EQ(begin({"malloc", "a", "Node::operator new(unsigned long)", "user"}), 1u) << "that of a class is the program's";
}

TEST_F(CutTest, LibstdcxxIsSkippedBeforeTheStartOfAThreadAlone) {
  Add("work", FrameRole::kProject);
  Add("", FrameRole::kSystem);
  frames_.back().module = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6";
  EXPECT_EQ(Result().end, 2u);
  Add("start_thread", FrameRole::kStart);
  EXPECT_EQ(Result().end, 1u);
}

TEST_F(CutTest, TheCallerIsTheFirstFrameOfTheProject) {
  Add("_IO_file_doallocate", FrameRole::kSystem);
  Add("fopen", FrameRole::kSystem);
  Add("open_log", FrameRole::kProject);
  Add("main", FrameRole::kProject);
  EXPECT_EQ(Result().begin, 0u);
  EXPECT_EQ(Result().caller, 2u);
}

TEST_F(CutTest, ThePlacesOfAnInstalledProgramMayBeInItsLibrary) {
  const auto add = [this](const char* function, FrameRole role, const char* module) {
    Add(function, role);
    frames_.back().module = module;
  };
  const auto build = [&](const char* program, const char* outer) {
    frames_.clear();
    add("fopen", FrameRole::kSystem, "/lib/x86_64-linux-gnu/libc.so.6");
    add("pl_open", FrameRole::kSystem, "/usr/lib/x86_64-linux-gnu/libswipl.so.9");
    add("PL_initialise", FrameRole::kSystem, "/usr/lib/x86_64-linux-gnu/libswipl.so.9");
    if (*outer != 0) add(outer, FrameRole::kProject, program);
    add("main", FrameRole::kProject, program);
    add("_start", FrameRole::kStart, program);
    return Result().caller;
  };
  EXPECT_EQ(build("/usr/bin/swipl", ""), 1u);
  EXPECT_TRUE(Result().is_in_library);
  EXPECT_EQ(build("/usr/bin/swipl", "load"), 3u) << "it has code of its own";
  EXPECT_EQ(build("/home/me/app", ""), 3u) << "main is what its author looks for";
  EXPECT_FALSE(Result().is_in_library);
  frames_.erase(frames_.begin() + 1, frames_.begin() + 3);
  frames_[1].module = "/usr/bin/app";
  EXPECT_EQ(Result().caller, 1u) << "nothing but libc is between";
}

TEST_F(CutTest, TheCallerIsInAnExtensionOfAnInterpreterAndNotInThat) {
  const auto add = [this](const char* function, const char* module, const char* file = "") {
    Add(function, FrameRole::kProject);
    frames_.back().module = module;
    frames_.back().file = file;
  };
  const auto build = [&](const char* program, const char* file) {
    frames_.clear();
    add("PyBytes_New", program, file);
    add("", "");  // of a just-in-time compiler
    add("leak", "/home/me/ext.so");
    add("PyEval", program, file);
    add("main", program, file);
    return Result().caller;
  };
  EXPECT_EQ(build("/usr/bin/python3.11", ""), 2u);
  EXPECT_EQ(build("/usr/bin/python3.11", "bytesobject.c"), 0u) << "it has its source";
  EXPECT_EQ(build("/home/me/app", ""), 0u) << "it is a project of its own";
  frames_.clear();
  add("PyBytes_New", "/usr/bin/python3.11");
  add("main", "/usr/bin/python3.11");
  EXPECT_EQ(Result().caller, 0u) << "there is no extension";
}

TEST_F(CutTest, AStackOfTheSystemAloneKeepsItsFirstFrame) {
  Add("_dl_init", FrameRole::kSystem);
  Add("_dl_start_user", FrameRole::kStart);
  EXPECT_EQ(Result().caller, 0u);
  EXPECT_EQ(Result().end, 1u);
}

TEST_F(CutTest, NothingOutsideOfTheStartCodeIsShown) {
  Add("work", FrameRole::kProject);
  Add("std::__invoke<void (*)()>", FrameRole::kInvoker);
  Add("std::thread::_State_impl<X>::_M_run", FrameRole::kInvoker);
  Add("start_thread", FrameRole::kStart);
  Add("", FrameRole::kProject);  // clone, in a library without symbols
  EXPECT_EQ(Result().begin, 0u);
  EXPECT_EQ(Result().end, 1u);
}

TEST_F(CutTest, AProgramsOwnCloneIsNotTheStart) {
  Add("strdup", FrameRole::kAllocator);
  Add("node_new", FrameRole::kProject);
  Add("clone", FrameRole::kProject);
  Add("thread_start", FrameRole::kProject);
  Add("start_thread", FrameRole::kStart);
  Add("clone3", FrameRole::kStart);
  frames_[4].module = frames_[5].module = "/lib/libc.so.6";
  EXPECT_EQ(Result().end, 4u);
  frames_.resize(3);
  EXPECT_EQ(Result().end, 3u) << "a stack that was not followed further";
  Add("[truncated: deeper than the limit]", FrameRole::kMarker);
  EXPECT_EQ(Result().end, 4u);
}

TEST_F(CutTest, TheStartOfAStaticExecutableIsFoundFromTheOuterEnd) {
  for (const char* outermost : {"clone3", "clone"}) {
    frames_.clear();
    Add("malloc", FrameRole::kAllocator);
    Add("clone", FrameRole::kProject);
    Add("work", FrameRole::kProject);
    Add("start_thread", FrameRole::kProject);
    Add(outermost, RoleOf(Of(outermost), format::kModuleExecutable));
    EXPECT_EQ(Result().begin, 1u) << outermost;
    EXPECT_EQ(Result().end, 3u) << outermost;
  }
}

TEST_F(CutTest, StartNamesInTheMiddleAreNotTheStart) {
  Add("work", FrameRole::kProject);
  Add("_start", FrameRole::kStart);
  Add("main", FrameRole::kProject);
  Add("__libc_start_main", FrameRole::kStart);
  EXPECT_EQ(Result().end, 3u);
}

TEST_F(CutTest, NeverLeavesNothing) {
  Add("operator new", FrameRole::kAllocator);
  Add("std::string::_M_create", FrameRole::kAllocator);
  EXPECT_EQ(Result().begin, 0u);
  EXPECT_EQ(Result().end, 2u);
  frames_.clear();
  Add("_start", FrameRole::kStart);
  EXPECT_EQ(Result().end, 1u);
  frames_.clear();
  Add("xmalloc", FrameRole::kAllocator);
  Add("[no unwind info]", FrameRole::kMarker);
  EXPECT_EQ(Result().begin, 0u) << "a marker is not a caller";
  EXPECT_EQ(Result().end, 2u);
}

}  // namespace
}  // namespace memtrace::report::names
