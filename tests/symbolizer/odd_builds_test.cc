// Names of functions in files that are built, stripped or processed in less usual ways.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "symbolizer/demangle.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/symbolizer_process.h"
#include "tests/symbolizer/compiled_subject.h"

namespace memtrace::symbolizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class OddBuildsTest : public CompiledSubject {};

// Swift's names begin so; "$d" and its like are marks of ARM and RISC-V, and have no type.
TEST_F(OddBuildsTest, FunctionsThatBeginWithADollarHaveTheirNames) {
  Write("a.s", ".globl $s4main3fooyyF\n.type $s4main3fooyyF, @function\n"
               "$s4main3fooyyF:\n$d: nop\n$x.1: nop\n$xrv64gc: nop\nret\n"
               ".size $s4main3fooyyF, .-$s4main3fooyyF\n"
               ".globl $start\n$start: nop\nret\n.section .note.GNU-stack,\"\",@progbits\n");
  Run("gcc -shared -nostdlib a.s -o program");
  EXPECT_THAT(ChainsIn("$s4main3fooyyF"), ElementsAre("$s4main3fooyyF@?:0"));
  const std::string start = Run("nm program | awk '$3 == \"$start\" {print $1}'");
  EXPECT_EQ(SymbolizeOne({}, {.path = Path("program")}, std::stoull(start, nullptr, 16) + 1).frames[0].at(0).function,
            "$start");
}

constexpr char kLibrary[] =
    "__attribute__((noinline)) int exported_one(volatile int *p) { return *p + 1; }\n"
    "int keepme(volatile int *p) { return exported_one(p) * 2; }\n";

TEST_F(OddBuildsTest, ASymbolTableOfFewNamesHidesNoOthers) {
  Write("l.c", kLibrary);
  Run("gcc -O2 -fPIC -shared l.c -o whole.so && strip -s -K keepme whole.so -o program");
  const std::vector<Address> one = AddressesOf("exported_one", "whole.so");
  const ModuleResult result = Symbolizer(Options()).Symbolize({.path = Path("program")}, one);
  ASSERT_THAT(result.frames.at(0), SizeIs(1));
  EXPECT_EQ(result.frames[0][0].function, "exported_one");
  EXPECT_THAT(ChainsIn("keepme"), ElementsAre("keepme@?:0"));
  const std::string_view prefixes[] = {"exported_", "keepme"};
  SymbolizerProcess process(Options{});
  const std::vector<NamedRange> ranges =
      process.FindNamedFunctions({.path = Path("program")}, prefixes);
  EXPECT_THAT(ranges, SizeIs(2)) << "each once";
  EXPECT_THAT(process.FindNamedFunctions({.path = Path("whole.so")}, prefixes), SizeIs(2));
}

TEST_F(OddBuildsTest, ADebugFilesSymbolsAreNotHiddenByFewOfTheModule) {
  Write("l.c", "static __attribute__((noinline)) int local(volatile int *p) { return *p + 1; }\n"
               "int keepme(volatile int *p) { return local(p) * 2; }\n");
  Run("gcc -O2 -fPIC -shared l.c -o whole.so && objcopy --only-keep-debug whole.so program.debug && "
      "strip -s -K keepme whole.so -o program && objcopy --add-gnu-debuglink=program.debug program");
  const ModuleResult result =
      Symbolizer(Options()).Symbolize({.path = Path("program")}, AddressesOf("local", "whole.so"));
  ASSERT_THAT(result.frames.at(0), SizeIs(1));
  EXPECT_EQ(result.frames[0][0].function, "local");
}

TEST_F(OddBuildsTest, AFileWithoutBuildIdThatWasWrittenSinceIsRefused) {
  Write("l.c", kLibrary);
  for (const bool build_id : {false, true}) {
    SCOPED_TRACE(build_id);
    Run(std::string("gcc -O2 -fPIC -shared -Wl,--build-id") + (build_id ? "" : "=none") + " l.c -o program");
    struct stat st;
    ASSERT_EQ(stat(Path("program").c_str(), &st), 0);
    const int64_t written = int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec;
    const uint64_t offset = AddressesOf("keepme", "program").front().offset + 1;
    const auto ask = [&](int64_t loaded_ns, const std::string& id = "") {
      return SymbolizeOne({}, {Path("program"), id, loaded_ns}, offset);
    };
    EXPECT_EQ(ask(written).state, ModuleState::kSymbolsOnly);
    EXPECT_EQ(ask(0).state, ModuleState::kSymbolsOnly) << "not known";
    if (build_id) {
      EXPECT_EQ(ask(written - 1, BuildIdOf(Path("program"))).state, ModuleState::kSymbolsOnly);
      continue;
    }
    const ModuleResult result = ask(written - 1);
    EXPECT_EQ(result.state, ModuleState::kWrittenSince);
    EXPECT_THAT(result.message, HasSubstr("changed since the trace"));
    EXPECT_THAT(result.frames[0], IsEmpty());
    // In a sysroot are copies, with times of their own.
    std::filesystem::create_directories(Path("root" + directory_.path()));
    Run("cp program root" + directory_.path());
    EXPECT_EQ(SymbolizeOne({.sysroot = Path("root")}, {Path("program"), "", written - 1}, offset).state,
              ModuleState::kSymbolsOnly);
  }
}

// dwz moves what several units have to a unit that names no language.
// It may be another build, or the same in a new place: nobody knows.
TEST_F(OddBuildsTest, AFileWithoutBuildIdThatWasMovedIsNamedWithANote) {
  Write("l.c", kLibrary);
  Run("gcc -O2 -fPIC -shared -Wl,--build-id=none l.c -o other && touch -d 2020-01-01 other && cp -p other program");
  struct stat st;
  ASSERT_EQ(stat(Path("program").c_str(), &st), 0);
  const int64_t written = int64_t{st.st_mtim.tv_sec} * 1'000'000'000;
  const int64_t changed = int64_t{st.st_ctim.tv_sec} * 1'000'000'000 + st.st_ctim.tv_nsec;
  const uint64_t offset = AddressesOf("keepme", "program").front().offset + 1;
  const ModuleResult before = SymbolizeOne({}, {Path("program"), "", written + 1'000'000'000}, offset);
  EXPECT_EQ(before.frames.at(0).at(0).function, "keepme");
  EXPECT_THAT(before.missed, HasSubstr("if it is another build, its names are wrong"));
  EXPECT_EQ(SymbolizeOne({}, {Path("program"), "", changed + 1}, offset).missed, "");
}

// Linkers write a build-id of a given length without the bytes that would fill it up.
TEST_F(OddBuildsTest, BuildIdsOfAnyLengthAreRead) {
  Write("l.c", kLibrary);
  for (const std::string id : {"ab", "1234", "123456789a", "0123456789abcdef0123456789abcdef01234567"}) {
    Run("gcc -O2 -fPIC -shared -Wl,--build-id=0x" + id + " l.c -o program");
    const auto file = ElfFile::Open(Path("program"));
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(absl::BytesToHexString((*file)->build_id()), id);
  }
}

// Its functions have no size; the last one would have all that has no symbols behind it.
TEST_F(OddBuildsTest, CrtBeginsFunctionsEndWhereTheyDo) {
  Write("p.c", "#include <stdlib.h>\n__attribute__((noinline)) char *helper(int n) { char *p = malloc(n); *p = 1; return p + 1; }\n"
               "int main(int argc, char **argv) { return *helper(argc); }\n");
  Run("gcc -O1 p.c -o whole && objcopy -N helper whole program");
  const uint64_t helper = AddressesOf("helper", "whole").front().offset;
  const uint64_t dummy = std::stoull(Run("nm whole | awk '$3 == \"frame_dummy\" {print $1}'"), nullptr, 16);
  ASSERT_LT(helper - dummy, 64u) << "right behind it";
  EXPECT_EQ(SymbolizeOne({}, {.path = Path("program")}, dummy + 1).frames.at(0).at(0).function, "frame_dummy");
  const auto frames = SymbolizeOne({}, {.path = Path("program")}, helper + 20).frames.at(0);
  EXPECT_TRUE(frames.empty() || frames.front().function.empty()) << frames.front().function;
}

// tcc writes "malloc@plt" for the stub: that is no malloc of the program's own.
TEST_F(OddBuildsTest, ASymbolOfAStubIsNotWhatItLeadsTo) {
  Write("l.c", kLibrary);
  Run("gcc -O2 -fPIC -shared l.c -o whole.so && "
      "objcopy --redefine-sym exported_one=malloc@plt --redefine-sym keepme=keepme@@V1 whole.so program");
  const auto name = [&](const std::string& symbol) {
    const uint64_t offset = AddressesOf(symbol, "whole.so").front().offset + 1;
    return SymbolizeOne({}, {.path = Path("program")}, offset).frames.at(0).at(0).function;
  };
  EXPECT_EQ(name("exported_one"), "malloc@plt");
  EXPECT_EQ(name("keepme"), "keepme") << "a version is one";
}

// Anybody may have written the file, and the reporter keeps the name once for each of its addresses.
TEST_F(OddBuildsTest, NamesWithoutEndAreCut) {
  Write("l.c", absl::StrCat(kLibrary, "int variable[4] = {1};\n"));
  const std::string function(20'000, 'f'), variable(20'000, 'v');
  Run("gcc -O2 -fPIC -fvisibility=hidden -shared l.c -o whole.so && objcopy --redefine-sym keepme=" +
      function + " --redefine-sym variable=" + variable + " whole.so program");
  SymbolizerProcess process(Options{});
  const ModuleResult result =
      process.Symbolize({.path = Path("program")}, AddressesOf("keepme", "whole.so"));
  EXPECT_EQ(result.frames.at(0).at(0).function, function.substr(0, kMaxNameBytes - 3) + "...");
  const std::string place = Run("nm whole.so | awk '$3 == \"variable\" {print $1}'");
  const VariableQuery queries[] = {{std::stoull(place, nullptr, 16) + 1, false}};
  const VariablesResult found = process.FindVariables({.path = Path("program")}, queries);
  EXPECT_EQ(found.variables.at(0).name, variable.substr(0, kMaxNameBytes - 3) + "...");
}

// The debug information calls each of them by its operator and types as the demangler writes none.
TEST_F(OddBuildsTest, TemplatesOfOperatorsHaveTheirScopes) {
  Write("a.cc", "#define BODY { return *p + sizeof(t); }\n"
                "namespace { struct Add {\n"
                "template <class T> __attribute__((noinline)) long operator()(T t, volatile int *p) const BODY\n"
                "template <class T> __attribute__((noinline)) long operator<<(T t) const { volatile int *p = (volatile int *)this; BODY }\n"
                "template <class T> __attribute__((noinline)) long operator<(T t) const { volatile int *p = (volatile int *)this; BODY }\n"
                "template <class T> __attribute__((noinline)) long operator->*(T t) const { volatile int *p = (volatile int *)this; BODY }\n"
                "int k; }; }\n"
                "int main(int c, char **) { Add a{c}; return a(1L, &c) + (a << 1ul) + (a < 1l) + (a->*1ul); }\n");
  Run("g++ -g -O0 a.cc -o program");
  const auto name_of = [&](const std::string& symbol) {
    const ModuleResult result =
        Symbolizer(Options()).Symbolize({.path = Path("program")}, AddressesOf(symbol, "program"));
    return result.frames.at(0).at(0).function;
  };
  EXPECT_EQ(name_of("_ZNK12_GLOBAL__N_13AddclIlEElT_PVi"),
            "long (anonymous namespace)::Add::operator()<long>(long, int volatile*) const");
  EXPECT_EQ(name_of("_ZNK12_GLOBAL__N_13AddlsImEElT_"),
            "long (anonymous namespace)::Add::operator<< <unsigned long>(unsigned long) const");
  EXPECT_EQ(name_of("_ZNK12_GLOBAL__N_13AddltIlEElT_"),
            "long (anonymous namespace)::Add::operator< <long>(long) const");
  EXPECT_EQ(name_of("_ZNK12_GLOBAL__N_13AddpmImEElT_"),
            "long (anonymous namespace)::Add::operator->*<unsigned long>(unsigned long) const");
}

TEST_F(OddBuildsTest, WhatTheDemanglerDoesNotKnowHasTheSourcesName) {
  Write("p.c", "static __attribute__((noinline, used)) int hid(volatile int *p) "
               "__asm__(\"_ZN5innerW5mathxL3hidEi\");\n"
               "static int hid(volatile int *p) { return *p + 1; }\n"
               "int main(int c, char **v) { return hid(&c); }\n");
  Run("gcc -g -O1 p.c -o program");
  const ModuleResult result = Symbolizer(Options()).Symbolize(
      {.path = Path("program")}, AddressesOf("_ZN5innerW5mathxL3hidEi", "program"));
  ASSERT_THAT(result.frames.at(0), SizeIs(1));
  EXPECT_EQ(result.frames[0][0].function, "hid");
  EXPECT_EQ(result.frames[0][0].linkage_name, "_ZN5innerW5mathxL3hidEi");
}

// As libxml2 and fontconfig have them, so that their own calls need no PLT.
TEST_F(OddBuildsTest, AFunctionWithAPublicAliasHasThatNameWithAndWithoutDebugInformation) {
  Write("p.c", "__attribute__((visibility(\"hidden\"), noinline)) int\n"
               "make__internal_alias(volatile int *p) { return *p + 1; }\n"
               "extern __typeof(make__internal_alias) make\n"
               "    __attribute__((alias(\"make__internal_alias\"), visibility(\"default\")));\n"
               "__attribute__((noinline)) int twice(volatile int *p) { return *p * 2; }\n"
               "extern __typeof(twice) also_twice __attribute__((alias(\"twice\")));\n"
               "static __attribute__((noinline, used)) int load(volatile int *p) { return *p * 3; }\n"
               "extern __typeof(load) start __attribute__((alias(\"load\")));\n"
               "int use(int n) { return make__internal_alias(&n) + twice(&n) + load(&n); }\n");
  Run("gcc -g -O1 -shared -fPIC p.c -o whole && strip -g -o stripped whole");
  const auto name_of = [&](const std::string& function, const std::string& file) {
    const ModuleResult result =
        Symbolizer(Options()).Symbolize({.path = Path(file)}, AddressesOf(function, "whole"));
    return result.frames.at(0).at(0).function;
  };
  EXPECT_EQ(name_of("make", "whole"), "make");
  EXPECT_EQ(name_of("make", "stripped"), "make");
  EXPECT_EQ(name_of("twice", "whole"), "twice") << "both are public: it is the source's";
  EXPECT_EQ(name_of("load", "whole"), "load") << "as gcc folds it with another function";
}

// It is another process's.
TEST_F(OddBuildsTest, DescriptorsAreNoFiles) {
  for (const std::string path : {"/proc/self/fd/0", "/proc/thread-self/fd/3", "/dev/fd/1"}) {
    const ModuleResult result = SymbolizeOne({}, {.path = path}, 16);
    EXPECT_THAT(result.message, HasSubstr("not a file")) << path;
  }
}

TEST_F(OddBuildsTest, AFilesNameMayHaveALineEnd) {
  Write("l.c", kLibrary);
  Run("gcc -O2 -fPIC -shared l.c -o \"$(printf 'a\\nb')\" && cp \"$(printf 'a\\nb')\" program && cp program 'z (deleted)'");
  const uint64_t offset = AddressesOf("keepme", "program").front().offset + 1;
  // As the kernel writes it.
  EXPECT_EQ(SymbolizeOne({}, {.path = Path("a\\012b")}, offset).state, ModuleState::kSymbolsOnly);
  EXPECT_EQ(SymbolizeOne({}, {.path = Path("z (deleted)")}, offset).state, ModuleState::kSymbolsOnly);
}

TEST_F(OddBuildsTest, InlinedFunctionsKeepTheirScopesAfterDwz) {
  Write("h.h", "namespace app { namespace {\n"
               "struct Pool { int n; __attribute__((always_inline)) int Make(volatile int *k) { return *k / n; } };\n"
               "__attribute__((always_inline)) inline int Helper(volatile int *k) { Pool q{*k}; return q.Make(k); }\n"
               "} \n"
               "static __attribute__((always_inline)) inline int Stat(volatile int *k, const char *) { return *k + 3; }\n"
               "}\n");
  for (const std::string unit : {"a", "b", "c"}) {
    Write(unit + ".cc", "#include \"h.h\"\nint helper_" + unit + "(volatile int *k) { return app::Helper(k); }\n"
                        "int stat_" + unit + "(volatile int *k) { return app::Stat(k, \"\"); }\n");
  }
  Run("g++ -O2 -g -gdwarf-4 -fPIC -shared a.cc b.cc c.cc -o program && dwz program");
  const std::string tags = Run("readelf --debug-dump=info program");
  ASSERT_THAT(tags, HasSubstr("DW_TAG_partial_unit"));
  EXPECT_EQ(InlinedInto("_Z8helper_aPVi"),
            "app::(anonymous namespace)::Helper(int volatile*) | app::(anonymous namespace)::Pool::Make(int volatile*)");
  EXPECT_EQ(InlinedInto("_Z6stat_bPVi"), "app::Stat(int volatile*, char const*)");
}

TEST_F(OddBuildsTest, WhereNoTypesAreKnownNoParametersAreMadeUp) {
  Write("a.cc", "namespace app { static inline __attribute__((always_inline)) int In(volatile int *k) { return *k / 3; } }\n"
                "static inline __attribute__((always_inline)) int None() { static volatile int k; return k / 3; }\n"
                "int one(volatile int *k) { return app::In(k); }\nint two() { return None(); }\n");
  for (const std::string compiler : {"g++", "clang++"}) {
    SCOPED_TRACE(compiler);
    Run(compiler + " -O2 -g1 -fPIC -shared a.cc -o program");
    EXPECT_EQ(InlinedInto("_Z3onePVi"), "In");
    EXPECT_EQ(InlinedInto("_Z3twov"), "None");
  }
  Run("g++ -O2 -g -fPIC -shared a.cc -o program");
  EXPECT_EQ(InlinedInto("_Z3onePVi"), "app::In(int volatile*)");
  EXPECT_EQ(InlinedInto("_Z3twov"), "None()");
}

// Of a type that has a unit of its own there is a stub where it is used, without a name and without parameters.
TEST_F(OddBuildsTest, TypesInUnitsOfTheirOwnChangeNoNames) {
  Write("a.cc", R"(#include <cstdlib>
#include <functional>
void* volatile sink;
struct Tag {};
namespace app {
template <typename T> struct Box {
  T value;
  inline __attribute__((always_inline)) void Put(Tag, T n, const Box& other) { sink = malloc(n + other.value); }
};
}
void Call(const std::function<void(int)>& f) { f(1); }
int main(int argc, char**) {
  app::Box<int> box{argc};
  box.Put(Tag(), argc, box);
  Call([&](int k) { box.Put({}, k, box); });
}
)");
  const std::string flags = "g++ -O2 -g a.cc -o ";
  Run(flags + "plain");
  const std::string handler = Run("nm plain | awk '/_M_invoke/ {printf \"%s\", $3}'");
  for (const std::string version : {"-gdwarf-4", "-gdwarf-5"}) {
    Run(flags + "program -fdebug-types-section " + version);
    EXPECT_EQ(ChainsIn("main"), ChainsIn("main", "plain")) << version;
    EXPECT_EQ(ChainsIn(handler), ChainsIn(handler, "plain")) << version;
  }
}

TEST_F(OddBuildsTest, SplitDebugInformationThatIsNotReadIsNotCalledGone) {
  Write("a.cc", "static inline __attribute__((always_inline)) int In(volatile int *k) { return *k / 3; }\n"
                "int a(volatile int *k) { return In(k); }\n");
  Run("clang++ -O2 -g -gsplit-dwarf=single -fPIC -c a.cc && clang++ -shared a.o -o program");
  const ModuleResult result = Symbolizer(Options()).Symbolize({.path = Path("program")}, AddressesOf("_Z1aPVi", "program"));
  EXPECT_THAT(result.missed, HasSubstr("a.o is there, but libdw finds nothing of this program in it"));
}

TEST_F(OddBuildsTest, ThatSplitDebugInformationIsGoneIsSaidOnce) {
  for (const std::string unit : {"a", "b"}) {
    Write(unit + ".cc", "static inline __attribute__((always_inline)) int In(volatile int *k) { return *k / 3; }\n"
                        "int " + unit + "(volatile int *k) { return In(k); }\n");
  }
  for (const std::string version : {"-gdwarf-4", "-gdwarf-5"}) {
    SCOPED_TRACE(version);
    Run("g++ -O2 -gsplit-dwarf " + version + " -fPIC -c a.cc b.cc && g++ -shared a.o b.o -o program");
    ModuleResult result;
    EXPECT_EQ(InlinedInto("_Z1aPVi", "program", &result), "In(int volatile*)");
    EXPECT_EQ(result.message, "");
    Run("rm a.dwo b.dwo");
    std::vector<Address> addresses = AddressesOf("_Z1aPVi", "program");
    for (const Address& address : AddressesOf("_Z1bPVi", "program")) addresses.push_back(address);
    result = Symbolizer(Options()).Symbolize({.path = Path("program")}, addresses);
    EXPECT_EQ(result.missed, Path("program") + ": a.dwo was not found; what was inlined into its functions is missing");
    EXPECT_EQ(Chain(result.frames.at(0)), "a(int volatile*)@a.cc:1") << "the line is that of In()";
  }
}

}  // namespace
}  // namespace memtrace::symbolizer
