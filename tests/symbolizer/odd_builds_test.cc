// Names of functions in files that are built, stripped or processed in less usual ways.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "symbolizer/named_functions.h"
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

}  // namespace
}  // namespace memtrace::symbolizer
