// Code that the linker removed or folded is still in the debug information, at address 0 and up:
// nothing of it may show in what is there. Each subject is made so that the removed code reaches
// the addresses of code that was kept.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/symbolizer/compiled_subject.h"

namespace memtrace::symbolizer {
namespace {

using ::testing::AnyOf;
using ::testing::Gt;
using ::testing::SizeIs;

class RemovedCodeTest : public CompiledSubject {
 protected:
  // `format` so many times, one on each line, with the number for each #.
  static std::string Statements(const std::string& format, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      absl::StrAppend(&text, absl::StrReplaceAll(format, {{"#", absl::StrCat(i)}}), "\n");
    }
    return text;
  }
};

// What a function on these lines of one file may give; line 0 is clang's word for code of no line.
::testing::Matcher<const std::set<std::string>&> OnlyLines(const std::string& function,
                                                           const std::string& file, int first,
                                                           int last) {
  std::vector<::testing::Matcher<std::string>> allowed = {
      ::testing::Eq(absl::StrCat(function, "@", file, ":0"))};
  for (int line = first; line <= last; ++line) {
    allowed.push_back(::testing::Eq(absl::StrCat(function, "@", file, ":", line)));
  }
  return ::testing::AllOf(SizeIs(Gt(1u)), ::testing::Each(::testing::AnyOfArray(allowed)));
}

constexpr char kInlined[] =
    "int cold(int);\n"
    "static inline __attribute__((always_inline)) int mix(volatile int *x, int i) {\n"
    "  int a = x[i]; if (a > 100) return x[i + 3] * 7; return x[i + 1] * a; }\n"
    "int removed(volatile int *x) { int v = 0;\n";

TEST_F(RemovedCodeTest, WhatWasInlinedInItIsNotSeen) {
  for (const std::string compiler : {"gcc -gdwarf-4", "gcc -gdwarf-5", "clang -gdwarf-4"}) {
    SCOPED_TRACE(compiler);
    Write("a.c", absl::StrCat(kInlined, Statements("v += mix(x, #); if (x[#] == v) v += cold(#);", 800),
                              "return v; }\n"
                              "volatile int sink;\n"
                              "__attribute__((noinline)) void kept(volatile int *x) {\n"
                              "  sink = x[0] / 3;\n", Statements("sink = x[#] + 1;", 100),
                              "}\n"));
    Write("b.c", "void kept(volatile int *);\nstatic int x[900];\nint cold(int n) { return n; }\n"
                 "int main(void) { kept(x); return 0; }\n");
    Run(compiler + " -O2 -ffunction-sections -fPIE -pie -Wl,--gc-sections a.c b.c -o program");
    EXPECT_THAT(ChainsIn("kept"), OnlyLines("kept", "a.c", 807, 911));
  }
}

TEST_F(RemovedCodeTest, ItsLinesAreNotTakenForOthers) {
  for (const std::string compiler : {"gcc -gdwarf-3", "gcc -gdwarf-4", "gcc -gdwarf-5",
                                     "gcc -g -gdwarf64", "clang -gdwarf-4", "clang -gdwarf-5"}) {
    SCOPED_TRACE(compiler);
    Write("a.c", absl::StrCat("int removed(volatile int *x) { int v = 0;\n",
                              Statements("v += x[#] * 3; x[#] ^= v;", 1000), "return v; }\n",
                              "__attribute__((noinline)) int kept(volatile int *x) {\n",
                              "  int v = x[0];\n", Statements("v += x[#] * 5;", 20),
                              "  return v; }\n",
                              "static int x[1000];\nint main(void) { return kept(x); }\n"));
    Run(compiler + " -O1 -ffunction-sections -fPIE -pie -Wl,--gc-sections a.c -o program");
    EXPECT_THAT(ChainsIn("kept"), OnlyLines("kept", "a.c", 1003, 1025));
  }
}

// No flag is needed for that: of two copies of a template of different size one is dropped.
TEST_F(RemovedCodeTest, TheLinesOfATemplatesOtherCopyAreNotTakenForOthers) {
  Write("h.h", absl::StrCat("template <class T> __attribute__((noipa, noinline)) T "
                            "parse(volatile T *x) { T v = 0;\n",
                            Statements("v += x[#] * 3; x[#] ^= v;", 800), "return v; }\n"));
  Write("b.cc", "#include \"h.h\"\nstatic int x[800];\nint two() { return parse(x); }\n");
  Write("main.cc", absl::StrCat("#include \"h.h\"\nint two();\nstatic int x[800];\n"
                                "__attribute__((noinline)) int kept(volatile int *x) {\n",
                                "  int v = x[0];\n", Statements("v += x[#] * 5;", 20),
                                "  return v; }\n",
                                "int main() { return kept(x) + parse(x) + two(); }\n"));
  Run("g++ -g -O2 -c b.cc && g++ -g -O1 -c main.cc && g++ b.o main.o -o program");
  EXPECT_THAT(ChainsIn("_Z4keptPVi"), OnlyLines("kept(int volatile*)", "main.cc", 4, 27));
}

// Folded into one, they have one name, and the lines of that one.
TEST_F(RemovedCodeTest, OfFoldedFunctionsOneIsSeen) {
  Write("a.c", "#include <stdlib.h>\n"
               "__attribute__((noinline)) void *alpha(int n) {\n"
               "  char *p = malloc(n);\n"
               "  p[0] = 1;\n"
               "  return p; }\n"
               "__attribute__((noinline)) void *twin(int n) {\n"
               "  char *p = malloc(n);\n"
               "  p[0] = 1;\n"
               "  return p; }\n"
               "int main(void) { alpha(1); twin(2); return 0; }\n");
  for (const std::string compiler : {"gcc -fuse-ld=gold", "clang -fuse-ld=gold", "gcc -gdwarf-4 -fuse-ld=gold"}) {
    SCOPED_TRACE(compiler);
    Run(compiler + " -g -O2 -ffunction-sections -Wl,--icf=all a.c -o program");
    EXPECT_THAT(ChainsIn("alpha"),
                AnyOf(OnlyLines("alpha", "a.c", 2, 5), OnlyLines("twin", "a.c", 6, 9)));
  }
}

}  // namespace
}  // namespace memtrace::symbolizer
