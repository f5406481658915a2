// The same program, built in every way that changes its debug information, has
// to give the same frames. The expectations come from the source's marks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "symbolizer/symbolizer.h"
#include "tests/symbolizer/fixture_program.h"

namespace memtrace::symbolizer {
namespace {

using ::testing::AnyOf;
using ::testing::IsEmpty;

class DwarfVariantsTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<Frame> FramesOf(const std::string& mark) {
    const ModuleResult result =
        SymbolizeOne(Options(), {.path = program_.path()}, program_.Offset(mark));
    EXPECT_EQ(result.state, ModuleState::kDebugInfo) << result.message;
    EXPECT_THAT(result.message, IsEmpty());
    return result.frames[0];
  }

  const FixtureProgram program_{GetParam()};
};

TEST_P(DwarfVariantsTest, NamesAPlainFunctionWithFileAndLine) {
  const std::vector<Frame> frames = FramesOf("main");
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].function, "main");
  EXPECT_EQ(frames[0].linkage_name, "");
  EXPECT_EQ(Place(frames[0]), program_.Line("main"));
  EXPECT_EQ(frames[0].file, absl::StrCat(MEMTRACE_FIXTURE_SOURCES, "/main.cc"));
  EXPECT_FALSE(frames[0].inlined);
  EXPECT_EQ(Chain(FramesOf("plain")), absl::StrCat("PlainC@", program_.Line("plain")));
}

TEST_P(DwarfVariantsTest, GivesTheWholeChainOfInlinedCalls) {
  EXPECT_EQ(Chain(FramesOf("innermost")),
            absl::StrCat("+void shop::Cart::Add<long>(long)@", program_.Line("innermost"),
                         " < +shop::Fill(shop::Cart&)@", program_.Line("fill"),
                         " < shop::Checkout(int)@", program_.Line("checkout")));
  const std::vector<Frame> frames = FramesOf("innermost");
  EXPECT_EQ(frames[0].linkage_name, "_ZN4shop4Cart3AddIlEEvT_");
  EXPECT_EQ(frames[0].file, absl::StrCat(MEMTRACE_FIXTURE_SOURCES, "/shop.h"));
  EXPECT_EQ(frames[2].file, absl::StrCat(MEMTRACE_FIXTURE_SOURCES, "/shop.cc"));
}

TEST_P(DwarfVariantsTest, QualifiesMethodsAndFunctionsOfAnonymousNamespaces) {
  EXPECT_EQ(Chain(FramesOf("method")),
            absl::StrCat("shop::Cart::Total(int) const@", program_.Line("method")));
  EXPECT_EQ(Chain(FramesOf("hidden")),
            absl::StrCat("shop::(anonymous namespace)::Hidden(int)@", program_.Line("hidden")));
}

TEST_P(DwarfVariantsTest, NamesLambdasAndMethodsOfLocalClasses) {
  const std::vector<Frame> lambda = FramesOf("lambda");
  ASSERT_EQ(lambda.size(), 1u);
  EXPECT_THAT(lambda[0].function,
              AnyOf("shop::Checkout(int)::{lambda(int)#1}::operator()(int) const",  // gcc
                    "shop::Checkout(int)::$_0::operator()(int) const"));            // clang
  EXPECT_EQ(Place(lambda[0]), program_.Line("lambda"));
  const std::vector<Frame> local = FramesOf("local");
  ASSERT_EQ(local.size(), 1u);
  EXPECT_EQ(local[0].function, "shop::Checkout(int)::Local::Of(int)");
  EXPECT_EQ(Place(local[0]), program_.Line("local"));
}

// The return address of a call at the end of a function lies in the next one.
TEST_P(DwarfVariantsTest, LooksAReturnAddressUpInTheCallBeforeIt) {
  EXPECT_EQ(Chain(FramesOf("last")), absl::StrCat("EndsInACall@", program_.Line("last")));
  const Address exact = {program_.Offset("last"), false};
  const ModuleResult result = Symbolizer(Options()).Symbolize({.path = program_.path()},
                                                              {&exact, 1});
  if (!result.frames[0].empty()) {
    EXPECT_NE(result.frames[0].back().function, "EndsInACall");
  }
}

TEST_P(DwarfVariantsTest, AnswersManyAddressesInTheOrderAsked) {
  std::vector<Address> addresses;
  std::vector<std::string> marks;
  for (int round = 0; round < 3; ++round) {
    for (const auto& [mark, offset] : program_.offsets()) {
      addresses.push_back({offset, true});
      marks.push_back(mark);
    }
  }
  const ModuleResult result =
      Symbolizer(Options()).Symbolize({.path = program_.path()}, addresses);
  ASSERT_EQ(result.frames.size(), addresses.size());
  for (size_t i = 0; i < marks.size(); ++i) {
    ASSERT_FALSE(result.frames[i].empty()) << marks[i];
    EXPECT_EQ(Place(result.frames[i][0]), program_.Line(marks[i])) << marks[i];
  }
}

TEST_P(DwarfVariantsTest, HasNoFramesForAddressesOutsideTheCode) {
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, UINT64_MAX, UINT64_MAX / 2}) {
    EXPECT_THAT(SymbolizeOne(Options(), {.path = program_.path()}, offset).frames[0], IsEmpty())
        << offset;
  }
}

// One Symbolizer belongs to one thread, but each thread may have one.
// main() lies in .text.startup, of which a unit of DWARF 2 says nothing.
TEST(OldDwarfTest, FunctionsOutsideOfTextHaveLines) {
  const TempDir directory;
  WriteFile(directory / "old.c", "int helper(int n) { return n + 1; }\n\nint main(void) { return helper(3); }\n");
  const std::string program = directory / "old";
  RunCommand(absl::StrCat("cd ", directory.path(), " && gcc -O2 -g -gdwarf-2 -gstrict-dwarf old.c -o old"));
  const uint64_t main = std::stoull(RunCommand("nm " + program + " | awk '$3 == \"main\" {print $1}'"), nullptr, 16);
  const ModuleResult result = SymbolizeOne(Options(), {.path = program}, main + 5);  // behind an instruction
  ASSERT_EQ(result.frames.size(), 1u);
  ASSERT_FALSE(result.frames[0].empty());
  EXPECT_EQ(Chain(result.frames[0]), "main@old.c:3");
}

TEST(SymbolizerThreadsTest, WorkAtTheSameTime) {
  const FixtureProgram program("gcc");
  const std::string expected = absl::StrCat("PlainC@", program.Line("plain"));
  std::vector<std::thread> threads;
  std::vector<int> right(4);
  for (int& count : right) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const Address address = {program.Offset("plain"), true};
        const ModuleResult result =
            Symbolizer(Options()).Symbolize({.path = program.path()}, {&address, 1});
        if (Chain(result.frames[0]) == expected) ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : right) EXPECT_EQ(count, 50);
}

INSTANTIATE_TEST_SUITE_P(Builds, DwarfVariantsTest, ::testing::Values(MEMTRACE_FIXTURE_VARIANTS),
                         [](const auto& info) {
                           std::string name;
                           for (const char* c = info.param; *c != '\0'; ++c) {
                             if (isalnum(*c)) name += *c;
                           }
                           return name;
                         });

}  // namespace
}  // namespace memtrace::symbolizer
