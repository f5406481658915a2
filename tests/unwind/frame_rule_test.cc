#include "preload/unwind/frame_rule.h"

#include <gtest/gtest.h>

#include "tests/unwind/cfi_builder.h"

namespace memtrace::unwind {
namespace {

constexpr uintptr_t kCodeAt = 0x40100000;

FrameRule RuleOf(const Bytes& program, const std::string& letters = "zR") {
  CfiBuilder builder;
  builder.AddFde(builder.AddCie(CfiBuilder::UsualProgram(), letters), kCodeAt, 0x10, program);
  const Bytes bytes = builder.Image();
  const GuardedBytes guarded(bytes);
  const CfiImage image = ImageOf(guarded, bytes.size());
  CfiRow row;
  EXPECT_EQ(FindRow(image, kCodeAt, &row), CfiStatus::kOk);
  const FrameRule rule = PackRow(image, row);
  const FrameRule again = FrameRule::Unpacked(rule.Packed());
  EXPECT_EQ(again.flags, rule.flags);
  EXPECT_EQ(again.cfa_offset, rule.cfa_offset);
  EXPECT_EQ(again.rbp_words, rule.rbp_words);
  EXPECT_NE(rule.Packed(), 0u);
  return rule;
}

TEST(FrameRuleTest, PacksTheUsualFrames) {
  FrameRule rule = RuleOf({0x0e, 48});
  EXPECT_EQ(rule.flags, kValid);
  EXPECT_EQ(rule.cfa_offset, 48);
  rule = RuleOf({0x0c, 6, 16, 0x86, 2});
  EXPECT_EQ(rule.flags, kValid | kCfaFromRbp | kRbpSaved);
  EXPECT_EQ(rule.cfa_offset, 16);
  EXPECT_EQ(rule.rbp_words, -2);
  rule = RuleOf(Bytes{0x0e} + Uleb(0x7fffffff));
  EXPECT_EQ(rule.cfa_offset, 0x7fffffff);
  rule = RuleOf(Bytes{0x0e} + Uleb(1 << 20) + Bytes{0x86} + Uleb(32768));
  EXPECT_EQ(rule.rbp_words, -32768);
  EXPECT_EQ(RuleOf({0x07, 16}).flags, kValid | kEnd);
}

TEST(FrameRuleTest, PacksRealignedFrames) {
  FrameRule rule = RuleOf({0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0x00});
  EXPECT_EQ(rule.flags, kValid | kCfaFromRbp | kCfaLoaded | kRbpSaved | kRbpFromRbp);
  EXPECT_EQ(rule.cfa_offset, -8);
  EXPECT_EQ(rule.rbp_words, 0);
  rule = RuleOf({0x0f, 5, 0x77, 0x20, 0x06, 0x23, 8});
  EXPECT_EQ(rule.flags, kValid | kCfaLoaded | kCfaPlus8);
  EXPECT_EQ(rule.cfa_offset, 32);
}

TEST(FrameRuleTest, PacksTheSignalTrampoline) {
  const Bytes program = Bytes{0x0f, 4, 0x77, 0xa0, 0x01, 0x06} +
                        Bytes{0x10, 6, 3, 0x77, 0xf8, 0x00} + Bytes{0x10, 16, 3, 0x77, 0xa8, 0x01};
  EXPECT_EQ(RuleOf(program, "zRS").flags, kValid | kSignal);
  EXPECT_EQ(RuleOf(program).flags, kValid | kGeneric) << "the augmentation says what it is";
  Bytes moved = program;
  moved[3] = 0xa8;
  EXPECT_EQ(RuleOf(moved, "zRS").flags, kValid | kGeneric) << "not where the kernel puts it";
}

TEST(FrameRuleTest, LeavesTheRestToTheGenericInterpreter) {
  for (const Bytes& program : {
           Bytes{0x0c, 3, 16},                               // CFA from rbx
           Bytes{0x09, 16, 5},                               // return address in rdi
           Bytes{0x90, 2},                                   // return address elsewhere
           Bytes{0x08, 16},                                  // return address "the same"
           Bytes{0x07, 6},                                   // rbp lost
           Bytes{0x14, 6, 2},                                // rbp computed
           Bytes{0x16, 6, 2, 0x77, 0x08},                    //
           Bytes{0x10, 6, 2, 0x73, 0x08},                    // rbp by way of rbx
           Bytes{0x87, 3},                                   // rsp saved
           Bytes{0x0f, 3, 0x73, 0x08, 0x06},                 // CFA by way of rbx
           Bytes{0x0f, 5, 0x77, 0x20, 0x06, 0x23, 16},       // plus something else
           Bytes{0x0f, 6, 0x77, 0x20, 0x06, 0x23, 8, 0x96},  // and more
           Bytes{0x0e} + Uleb(0x80000000),                   // too far
           Bytes{0x86} + Uleb(32769),                        //
       }) {
    EXPECT_EQ(RuleOf(program).flags, kValid | kGeneric)
        << int{program[0]} << " " << int{program[1]};
  }
}

// All bytes are looked at but the addresses, and of these the two of one variable.
TEST(FrameRuleTest, TakesNothingElseForTheCallOfDestructors) {
  const Bytes code = {0x80, 0x3d, 0x05, 0x2f, 0,    0,    0,                          // cmpb
                      0x75, 0x2b,                                                     // jne
                      0x55, 0x48, 0x83, 0x3d, 0xd2, 0x2e, 0,    0,    0,              // push, cmpq
                      0x48, 0x89, 0xe5, 0x74, 0x0c,                                   // mov, je
                      0x48, 0x8b, 0x3d, 0xe6, 0x2e, 0,    0,                          // mov
                      0xe8, 0xf9, 0xfe, 0xff, 0xff,                                   // call
                      0xe8, 0x64, 0xff, 0xff, 0xff,                                   // call
                      0xc6, 0x05, 0xdd, 0x2e, 0,    0,    1,                          // movb
                      0x5d, 0xc3, 0x90};                                              // pop, ret
  ASSERT_EQ(code.size(), kBeforeFinalizedBytes + kBehindFinalizedBytes);
  EXPECT_TRUE(IsFinalized(code.data() + kBeforeFinalizedBytes));
  size_t free_bytes = 0;
  for (size_t i = 0; i < code.size(); ++i) {
    Bytes changed = code;
    changed[i] ^= 0x10;
    free_bytes += IsFinalized(changed.data() + kBeforeFinalizedBytes);
  }
  EXPECT_EQ(free_bytes, 1u + 4 * 4 + 1) << "jne's, four addresses, and what is behind";
}

}  // namespace
}  // namespace memtrace::unwind
