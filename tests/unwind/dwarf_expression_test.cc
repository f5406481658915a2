#include "preload/unwind/dwarf_expression.h"

#include <gtest/gtest.h>

#include "tests/unwind/cfi_builder.h"

namespace memtrace::unwind {
namespace {

class DwarfExpressionTest : public testing::Test {
 protected:
  EvalStatus Evaluate(const Bytes& bytes, uint64_t* result, const uint64_t* first = nullptr) {
    StackReader reader(&bounds_, reinterpret_cast<uintptr_t>(&bounds_));
    const GuardedBytes guarded(bytes);
    return EvaluateExpression(ByteReader(guarded.data(), guarded.data() + bytes.size()),
                              registers_, &reader, first, result);
  }
  int64_t ValueOf(const Bytes& bytes) {
    uint64_t result = 0;
    EXPECT_EQ(Evaluate(bytes, &result), EvalStatus::kOk);
    return static_cast<int64_t>(result);
  }
  EvalStatus StatusOf(const Bytes& bytes) {
    uint64_t result;
    return Evaluate(bytes, &result);
  }

  StackBounds bounds_;
  Registers registers_;
};

TEST_F(DwarfExpressionTest, ReadsConstantsOfEverySize) {
  EXPECT_EQ(ValueOf({0x30}), 0);
  EXPECT_EQ(ValueOf({0x4f}), 31);
  EXPECT_EQ(ValueOf({0x08, 0xff}), 255);
  EXPECT_EQ(ValueOf({0x09, 0xff}), -1);
  EXPECT_EQ(ValueOf({0x0a, 0xff, 0xff}), 65535);
  EXPECT_EQ(ValueOf({0x0b, 0xfe, 0xff}), -2);
  EXPECT_EQ(ValueOf(Bytes{0x0c} + Raw<uint32_t>(0xffffffff)), 0xffffffff);
  EXPECT_EQ(ValueOf(Bytes{0x0d} + Raw<int32_t>(-3)), -3);
  EXPECT_EQ(ValueOf(Bytes{0x0e} + Raw<uint64_t>(1ull << 63)), INT64_MIN);
  EXPECT_EQ(ValueOf(Bytes{0x0f} + Raw<int64_t>(-4)), -4);
  EXPECT_EQ(ValueOf(Bytes{0x03} + Raw<uint64_t>(0x1234)), 0x1234);
  EXPECT_EQ(ValueOf(Bytes{0x10} + Uleb(300)), 300);
  EXPECT_EQ(ValueOf(Bytes{0x11} + Sleb(-300)), -300);
}

TEST_F(DwarfExpressionTest, Calculates) {
  // a = 17, b = 5 (lit17 lit5 op)
  struct Case {
    uint8_t op;
    int64_t result;
  };
  for (const Case& c : {Case{0x1a, 17 & 5}, Case{0x1b, 3}, Case{0x1c, 12}, Case{0x1d, 2},
                        Case{0x1e, 85}, Case{0x21, 17 | 5}, Case{0x22, 22}, Case{0x24, 17 << 5},
                        Case{0x25, 0}, Case{0x26, 0}, Case{0x27, 17 ^ 5}, Case{0x29, 0},
                        Case{0x2a, 1}, Case{0x2b, 1}, Case{0x2c, 0}, Case{0x2d, 0},
                        Case{0x2e, 1}}) {
    EXPECT_EQ(ValueOf({0x41, 0x35, c.op}), c.result) << int{c.op};
  }
  EXPECT_EQ(ValueOf({0x09, 0xf0, 0x32, 0x26}), -4) << "arithmetic shift";
  EXPECT_EQ(ValueOf({0x09, 0xf0, 0x34, 0x1b}), -4) << "signed division";
  EXPECT_EQ(ValueOf({0x35, 0x1f}), -5);
  EXPECT_EQ(ValueOf({0x35, 0x20}), ~int64_t{5});
  EXPECT_EQ(ValueOf({0x09, 0xf0, 0x19}), 16);
  EXPECT_EQ(ValueOf(Bytes{0x35, 0x23} + Uleb(1000)), 1005);
  EXPECT_EQ(ValueOf({0x31, 0x08, 200, 0x24}), 0) << "shifted out";
}

TEST_F(DwarfExpressionTest, MovesItsStack) {
  EXPECT_EQ(ValueOf({0x31, 0x32, 0x12, 0x22, 0x22}), 5);        // dup
  EXPECT_EQ(ValueOf({0x31, 0x32, 0x13}), 1);                    // drop
  EXPECT_EQ(ValueOf({0x37, 0x32, 0x14, 0x1e, 0x1e}), 98);       // over
  EXPECT_EQ(ValueOf({0x37, 0x32, 0x33, 0x15, 2}), 7);           // pick
  EXPECT_EQ(ValueOf({0x37, 0x32, 0x16, 0x1c}), -5);             // swap
  EXPECT_EQ(ValueOf({0x31, 0x32, 0x33, 0x17}), 2);              // rot: 3 1 2
  EXPECT_EQ(ValueOf({0x31, 0x32, 0x33, 0x17, 0x13, 0x13}), 3);
}

TEST_F(DwarfExpressionTest, Jumps) {
  EXPECT_EQ(ValueOf({0x31, 0x2f, 1, 0, 0x32, 0x96}), 1) << "skip";
  EXPECT_EQ(ValueOf({0x31, 0x30, 0x28, 1, 0, 0x32}), 2) << "not taken";
  EXPECT_EQ(ValueOf({0x31, 0x31, 0x28, 1, 0, 0x32}), 1) << "taken";
  EXPECT_EQ(StatusOf({0x31, 0x2f, 0xfd, 0xff}), EvalStatus::kUnsupported) << "endless";
  EXPECT_EQ(StatusOf({0x31, 0x2f, 100, 0}), EvalStatus::kUnsupported) << "out of it, ahead";
  EXPECT_EQ(StatusOf({0x31, 0x2f, 0, 0x80}), EvalStatus::kUnsupported) << "out of it, behind";
}

TEST_F(DwarfExpressionTest, ReadsRegistersAndMemory) {
  const uint64_t words[2] = {42, 0x1122334455667788};
  registers_.SetValue(kRsp, reinterpret_cast<uintptr_t>(words) - 8);
  registers_.SetMemory(kRbx, reinterpret_cast<uintptr_t>(&words[0]));
  EXPECT_EQ(ValueOf({0x77, 8, 0x06}), 42);
  EXPECT_EQ(ValueOf({0x77, 16, 0x94, 2}), 0x7788);
  EXPECT_EQ(ValueOf({0x73, 1}), 43);
  EXPECT_EQ(ValueOf({0x92, 3, 0x7f}), 41) << "bregx";
  uint64_t result;
  const uint64_t cfa = 1000;
  EXPECT_EQ(Evaluate({0x38, 0x1c}, &result, &cfa), EvalStatus::kOk);
  EXPECT_EQ(result, 992u);
}

TEST_F(DwarfExpressionTest, SaysWhatItLacks) {
  EXPECT_EQ(StatusOf({0x70, 0}), EvalStatus::kUnknown);
  EXPECT_EQ(StatusOf({0x31, 0x06}), EvalStatus::kUnreadable);
  registers_.SetMemory(kRbx, 8);
  EXPECT_EQ(StatusOf({0x73, 0}), EvalStatus::kUnreadable);
  EXPECT_EQ(StatusOf({0x92, 99, 0}), EvalStatus::kUnsupported);
  EXPECT_EQ(StatusOf({}), EvalStatus::kUnsupported) << "no result";
  EXPECT_EQ(StatusOf({0x22}), EvalStatus::kUnsupported) << "nothing to add";
  EXPECT_EQ(StatusOf({0x31, 0x30, 0x1b}), EvalStatus::kUnsupported) << "by zero";
  EXPECT_EQ(StatusOf({0x31, 0x30, 0x1d}), EvalStatus::kUnsupported) << "by zero";
  EXPECT_EQ(StatusOf(Bytes{0x0e} + Raw(INT64_MIN) + Bytes{0x09, 0xff, 0x1b}),
            EvalStatus::kUnsupported);
  EXPECT_EQ(StatusOf(Bytes(100, 0x31)), EvalStatus::kUnsupported) << "too deep";
  EXPECT_EQ(StatusOf({0x9c}), EvalStatus::kUnsupported) << "call_frame_cfa has no place in CFI";
  EXPECT_EQ(StatusOf({0x0c, 1, 2}), EvalStatus::kUnsupported) << "cut";
}

}  // namespace
}  // namespace memtrace::unwind
