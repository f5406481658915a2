#include "preload/unwind/cfi_reader.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unwind/cfi_builder.h"

namespace memtrace::unwind {
namespace {

constexpr uintptr_t kCode = 0x40100000;

// The row of a function with this program, `offset` bytes into it.
CfiStatus RowIn(const Bytes& program, uintptr_t offset, CfiRow* row) {
  CfiBuilder builder;
  builder.AddFde(builder.AddCie(), kCode, 0x100, program);
  return RowOf(builder.Image(), kCode + offset, row);
}

TEST(CfiReaderTest, FindsTheFunctionAndItsEnd) {
  CfiBuilder builder;
  const size_t cie = builder.AddCie();
  builder.AddFde(cie, kCode + 0x200, 0x10, {0x0e, 32});
  builder.AddFde(cie, kCode, 0x20, {0x0e, 16});
  builder.AddFde(cie, kCode + 0x20, 0x10, {0x0e, 24});
  CfiRow row;
  for (const bool with_table : {true, false}) {
    const Bytes image = builder.Image(with_table);
    EXPECT_EQ(RowOf(image, kCode - 1, &row), CfiStatus::kNoFde);
    ASSERT_EQ(RowOf(image, kCode, &row), CfiStatus::kOk);
    EXPECT_EQ(row.cfa.value, 16);
    ASSERT_EQ(RowOf(image, kCode + 0x1f, &row), CfiStatus::kOk);
    EXPECT_EQ(row.cfa.value, 16);
    ASSERT_EQ(RowOf(image, kCode + 0x20, &row), CfiStatus::kOk);
    EXPECT_EQ(row.cfa.value, 24);
    EXPECT_EQ(RowOf(image, kCode + 0x30, &row), CfiStatus::kNoFde) << "padding has no function";
    EXPECT_EQ(RowOf(image, kCode + 0x1ff, &row), CfiStatus::kNoFde);
    ASSERT_EQ(RowOf(image, kCode + 0x20f, &row), CfiStatus::kOk);
    EXPECT_EQ(row.cfa.value, 32);
    EXPECT_EQ(RowOf(image, kCode + 0x210, &row), CfiStatus::kNoFde);
    EXPECT_EQ(RowOf(image, ~uintptr_t{0}, &row), CfiStatus::kNoFde);
  }
}

// lld's table has the first of those that begin at an address, and no other.
TEST(CfiReaderTest, AFunctionWithoutCodeHidesNoOther) {
  CfiBuilder builder;
  const size_t cie = builder.AddCie();
  builder.AddFde(cie, kCode, 0x10, {0x0e, 16});
  builder.AddFde(cie, kCode + 0x10, 0, {0x0e, 24});
  builder.DropTableEntry(builder.AddFde(cie, kCode + 0x10, 0x10, {0x0e, 32}));
  builder.AddFde(cie, kCode + 0x30, 0, {0x0e, 40});
  CfiRow row;
  ASSERT_EQ(RowOf(builder.Image(), kCode + 0x18, &row), CfiStatus::kOk);
  EXPECT_EQ(row.cfa.value, 32);
  EXPECT_EQ(RowOf(builder.Image(), kCode + 0x20, &row), CfiStatus::kNoFde);
  EXPECT_EQ(RowOf(builder.Image(), kCode + 0x30, &row), CfiStatus::kNoFde);
}

TEST(CfiReaderTest, GivesTheRangeOfTheRow) {
  CfiRow row;
  const Bytes program = {0x41, 0x0e, 16, 0x02, 0x10, 0x0e, 24, 0x03, 0x20, 0x00, 0x0e, 8};
  ASSERT_EQ(RowIn(program, 0, &row), CfiStatus::kOk);
  EXPECT_EQ(row.start, kCode);
  EXPECT_EQ(row.end, kCode + 1);
  EXPECT_EQ(row.cfa.value, 8);
  ASSERT_EQ(RowIn(program, 0x10, &row), CfiStatus::kOk);
  EXPECT_EQ(row.start, kCode + 1);
  EXPECT_EQ(row.end, kCode + 0x11);
  EXPECT_EQ(row.cfa.value, 16);
  ASSERT_EQ(RowIn(program, 0x31, &row), CfiStatus::kOk);
  EXPECT_EQ(row.start, kCode + 0x31);
  EXPECT_EQ(row.end, kCode + 0x100);
  EXPECT_EQ(row.cfa.value, 8);
}

TEST(CfiReaderTest, KnowsEveryKindOfRule) {
  CfiRow row;
  const Bytes program = Bytes{0x86, 2} +                   // rbp at cfa - 16
                        Bytes{0x05, 3} + Uleb(3) +         // rbx at cfa - 24, long form
                        Bytes{0x11, 12} + Sleb(-4) +       // r12 at cfa + 32
                        Bytes{0x2f, 13} + Uleb(5) +        // r13 at cfa + 40
                        Bytes{0x14, 14} + Uleb(6) +        // r14 is cfa - 48
                        Bytes{0x15, 15} + Sleb(-7) +       // r15 is cfa + 56
                        Bytes{0x09, 16, 8} +               // rip in r8
                        Bytes{0x07, 0} + Bytes{0x08, 1} +  // rax lost, rdx the same
                        Bytes{0x10, 2, 2, 0x77, 0x08} +    // rcx at rsp + 8
                        Bytes{0x16, 4, 2, 0x77, 0x10} +    // rsi is rsp + 16
                        Bytes{0x05, 40} + Uleb(9) +        // a vector register
                        Bytes{0x2e, 0x20, 0x00};           // GNU_args_size, nop
  ASSERT_EQ(RowIn(program, 0, &row), CfiStatus::kOk);
  const auto expect = [&row](int reg, RuleKind kind, int32_t value) {
    EXPECT_EQ(row.registers[reg].kind, kind) << reg;
    EXPECT_EQ(row.registers[reg].value, value) << reg;
  };
  expect(kRbp, RuleKind::kOffset, -16);
  expect(kRbx, RuleKind::kOffset, -24);
  expect(kR12, RuleKind::kOffset, 32);
  expect(kR13, RuleKind::kOffset, 40);
  expect(kR14, RuleKind::kValOffset, -48);
  expect(kR15, RuleKind::kValOffset, 56);
  expect(kRip, RuleKind::kRegister, kR8);
  expect(kRax, RuleKind::kUndefined, 0);
  expect(kRdx, RuleKind::kSame, 0);
  EXPECT_EQ(row.registers[kRcx].kind, RuleKind::kExpression);
  EXPECT_EQ(row.registers[kRsi].kind, RuleKind::kValExpression);
  EXPECT_EQ(row.registers[kRdi].kind, RuleKind::kUnspecified);
}

TEST(CfiReaderTest, KnowsEveryWayToSetTheCfa) {
  CfiRow row;
  ASSERT_EQ(RowIn({0x0c, 6, 40}, 0, &row), CfiStatus::kOk);
  EXPECT_EQ(row.cfa.reg, kRbp);
  EXPECT_EQ(row.cfa.value, 40);
  ASSERT_EQ(RowIn(Bytes{0x12, 3} + Sleb(-2), 0, &row), CfiStatus::kOk);
  EXPECT_EQ(row.cfa.reg, kRbx);
  EXPECT_EQ(row.cfa.value, 16);
  ASSERT_EQ(RowIn({0x0d, 12}, 0, &row), CfiStatus::kOk);
  EXPECT_EQ(row.cfa.reg, kR12);
  EXPECT_EQ(row.cfa.value, 8);
  ASSERT_EQ(RowIn(Bytes{0x13} + Sleb(3), 0, &row), CfiStatus::kOk);
  EXPECT_EQ(row.cfa.reg, kRsp);
  EXPECT_EQ(row.cfa.value, -24);

  CfiBuilder builder;
  builder.AddFde(builder.AddCie(), kCode, 0x100, {0x0f, 3, 0x77, 0x08, 0x06});
  const Bytes bytes = builder.Image();
  const GuardedBytes guarded(bytes);
  const CfiImage image = ImageOf(guarded, bytes.size());
  ASSERT_EQ(FindRow(image, kCode, &row), CfiStatus::kOk);
  ASSERT_TRUE(row.cfa.is_expression);
  const ByteReader expression = ExpressionBytes(image, row.cfa.value);
  EXPECT_EQ(Bytes(expression.at(), expression.end()), (Bytes{0x77, 0x08, 0x06}));
}

TEST(CfiReaderTest, RemembersStatesWithinStates) {
  CfiRow row;
  // 16 { 24 { 32 } 24 } 16, a byte of code each
  const Bytes program = {0x0e, 16, 0x86, 2,    0x0a, 0x41, 0x0e, 24,   0x0a, 0x41,
                         0x0e, 32, 0xc6, 0x0b, 0x41, 0x0b, 0x41, 0x0e, 40};
  const int64_t expected[] = {16, 24, 24, 16, 40};
  for (uintptr_t offset = 0; offset < 5; ++offset) {
    ASSERT_EQ(RowIn(program, offset, &row), CfiStatus::kOk);
    EXPECT_EQ(row.cfa.value, expected[offset]) << offset;
    EXPECT_EQ(row.registers[kRbp].kind, RuleKind::kOffset) << "restored with the state";
  }
  EXPECT_EQ(RowIn({0x0b}, 0, &row), CfiStatus::kMalformed) << "nothing was remembered";
  EXPECT_EQ(RowIn(Bytes(kMaxRememberedStates, 0x0a), 0, &row), CfiStatus::kOk);
  EXPECT_EQ(RowIn(Bytes(kMaxRememberedStates + 1, 0x0a), 0, &row), CfiStatus::kUnsupported);
}

TEST(CfiReaderTest, RestoresWhatTheCieSaid) {
  CfiBuilder builder;
  const size_t cie = builder.AddCie(CfiBuilder::UsualProgram() + Bytes{0x83, 4});
  builder.AddFde(cie, kCode, 0x100, {0x83, 9, 0x41, 0xc3, 0x41, 0x83, 9, 0x41, 0x06, 3});
  CfiRow row;
  const int32_t expected[] = {-72, -32, -72, -32};
  for (uintptr_t offset = 0; offset < 4; ++offset) {
    ASSERT_EQ(RowOf(builder.Image(), kCode + offset, &row), CfiStatus::kOk);
    EXPECT_EQ(row.registers[kRbx].value, expected[offset]) << offset;
  }
}

TEST(CfiReaderTest, RefusesProgramsThatContradictThemselves) {
  CfiRow row;
  EXPECT_EQ(RowIn({0x0f, 1, 0x77, 0x0e, 8}, 0, &row), CfiStatus::kMalformed) << "cut operand";
  EXPECT_EQ(RowIn({0x0f, 2, 0x77, 0x00, 0x0e, 8}, 0, &row), CfiStatus::kMalformed)
      << "an offset for an expression";
  EXPECT_EQ(RowIn({0x3f, 0}, 0, &row), CfiStatus::kUnsupported) << "an opcode nobody knows";
  EXPECT_EQ(RowIn(Bytes{0x0c} + Uleb(99) + Bytes{8}, 0, &row), CfiStatus::kUnsupported);
  EXPECT_EQ(RowIn({0x10, 6, 0x7f, 0x77}, 0, &row), CfiStatus::kMalformed)
      << "an expression longer than the FDE";
  CfiBuilder builder;
  builder.AddFde(builder.AddCie({}), kCode, 0x100, {});
  EXPECT_EQ(RowOf(builder.Image(), kCode, &row), CfiStatus::kMalformed) << "no CFA at all";
}

TEST(CfiReaderTest, PassesOverPersonalityAndLsda) {
  CfiRow row;
  struct Case {
    const char* letters;
    Bytes data;
  };
  const uint8_t indirect_sdata4 = 0x9b;
  for (const Case& c : {
           Case{"zPLR", Bytes{indirect_sdata4, 1, 2, 3, 4, 0x1b, 0x1b}},
           Case{"zRPL", Bytes{0x1b, 0x04, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b}},
           Case{"zPR", Bytes{0x02, 1, 2, 0x1b}},
           Case{"zPR", Bytes{0x01, 0x80, 0x80, 0x01, 0x1b}},
           Case{"zPR", Bytes{0xff, 0x1b}},
           Case{"zRSB", Bytes{0x1b}},
       }) {
    CfiBuilder builder;
    builder.AddFde(builder.AddCie(CfiBuilder::UsualProgram(), c.letters, c.data), kCode, 0x10,
                   {0x0e, 48}, {9, 9, 9, 9});
    ASSERT_EQ(RowOf(builder.Image(), kCode + 1, &row), CfiStatus::kOk) << c.letters;
    EXPECT_EQ(row.cfa.value, 48) << c.letters;
    EXPECT_EQ(row.signal_frame, std::string(c.letters).find('S') != std::string::npos);
  }
  CfiBuilder builder;
  builder.AddFde(builder.AddCie(CfiBuilder::UsualProgram(), "zRX", {0x1b}), kCode, 0x10, {});
  EXPECT_EQ(RowOf(builder.Image(), kCode, &row), CfiStatus::kUnsupported);
}

TEST(CfiReaderTest, ReadsAPersonalityThatIsAligned) {
  // letters end at kEhFrame + 4 + 4 + 1 + 4 ("zPR") ...: the pointer lies at the next
  // multiple of eight, wherever that is.
  CfiBuilder builder;
  const uintptr_t encoding_at = CfiBuilder::kEhFrame + 4 + 4 + 1 + 4 + 1 + 1 + 1 + 1;
  const size_t padding = -(encoding_at + 1) & 7;
  const Bytes data = Bytes{0x50} + Bytes(padding, 0) + Bytes(8, 0xaa) + Bytes{0x1b};
  builder.AddFde(builder.AddCie(CfiBuilder::UsualProgram(), "zPR", data), kCode, 0x10, {0x0e, 48});
  CfiRow row;
  ASSERT_EQ(RowOf(builder.Image(), kCode + 1, &row), CfiStatus::kOk);
  EXPECT_EQ(row.cfa.value, 48);
}

TEST(CfiReaderTest, ReadsOlderVersionsAndWideEntries) {
  CfiRow row;
  for (const uint8_t version : {1, 3, 4}) {
    CfiBuilder builder;
    builder.AddFde(builder.AddCie(CfiBuilder::UsualProgram(), "zR", {0x1b}, version), kCode, 0x10,
                   {0x0e, 48});
    ASSERT_EQ(RowOf(builder.Image(), kCode, &row), CfiStatus::kOk) << int{version};
    EXPECT_EQ(row.cfa.value, 48);
  }
  CfiBuilder builder;
  const size_t cie = builder.AddCie();
  const size_t at = builder.size();
  const size_t id = at + 12;
  builder.AddTableEntry(kCode, at);
  builder.AddWideEntry(id - cie,
                       Raw(static_cast<int32_t>(kCode - (CfiBuilder::kEhFrame + id + 8))) +
                           Raw<uint32_t>(0x10) + Bytes{0, 0x0e, 56});
  ASSERT_EQ(RowOf(builder.Image(), kCode, &row), CfiStatus::kOk);
  EXPECT_EQ(row.cfa.value, 56);
  CfiBuilder unknown;
  unknown.AddFde(unknown.AddCie(CfiBuilder::UsualProgram(), "zR", {0x1b}, 2), kCode, 0x10, {});
  EXPECT_EQ(RowOf(unknown.Image(), kCode, &row), CfiStatus::kUnsupported);
}

TEST(CfiReaderTest, MovesToAnAddressThatIsGiven) {
  CfiBuilder builder;
  const size_t cie = builder.AddCie();
  // Behind the FDE's head: length, id, start, length, augmentation length, opcode.
  const uintptr_t here = CfiBuilder::kEhFrame + builder.size() + 4 + 4 + 4 + 4 + 1 + 1;
  builder.AddFde(cie, kCode, 0x100,
                 Bytes{0x01} + Raw(static_cast<int32_t>(kCode + 0x40 - here)) + Bytes{0x0e, 64});
  CfiRow row;
  ASSERT_EQ(RowOf(builder.Image(), kCode + 0x3f, &row), CfiStatus::kOk);
  EXPECT_EQ(row.cfa.value, 8);
  EXPECT_EQ(row.end, kCode + 0x40);
  ASSERT_EQ(RowOf(builder.Image(), kCode + 0x40, &row), CfiStatus::kOk);
  EXPECT_EQ(row.cfa.value, 64);
}

// No byte that is missing or wrong may make the reader leave the image: behind it
// lies a page without access.
TEST(CfiReaderTest, StaysInsideAnImageThatIsCut) {
  CfiBuilder builder;
  const size_t cie =
      builder.AddCie(CfiBuilder::UsualProgram(), "zPLR", {0x9b, 1, 2, 3, 4, 0x1b, 0x1b});
  builder.AddFde(cie, kCode, 0x40, {0x41, 0x0e, 16, 0x0f, 3, 0x77, 8, 6}, {1, 2, 3, 4});
  const Bytes whole = builder.Image();
  const size_t end_of_fde = whole.size() - 4;
  for (size_t size = 0; size < whole.size(); ++size) {
    CfiRow row;
    const CfiStatus status =
        RowOf(Bytes(whole.begin(), whole.begin() + static_cast<long>(size)), kCode + 1, &row);
    EXPECT_EQ(status == CfiStatus::kOk, size >= end_of_fde) << size;
  }
}

TEST(CfiReaderTest, StaysInsideAnImageThatIsWrong) {
  CfiBuilder builder;
  const size_t cie =
      builder.AddCie(CfiBuilder::UsualProgram(), "zPLR", {0x9b, 1, 2, 3, 4, 0x1b, 0x1b});
  for (uint32_t i = 0; i < 8; ++i) {
    builder.AddFde(cie, kCode + i * 0x40, 0x40,
                   {0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x44, 0x0f, 3, 0x77, 8, 6, 0x41, 0x0b},
                   {1, 2, 3, 4});
  }
  std::mt19937 random(1);
  for (const bool with_table : {true, false}) {
    const Bytes whole = builder.Image(with_table);
    const GuardedBytes guarded(whole);
    const CfiImage image = ImageOf(guarded, whole.size());
    for (int round = 0; round < 100'000; ++round) {
      memcpy(guarded.data(), whole.data(), 128);
      memcpy(guarded.data() + CfiBuilder::kHdrBytes, whole.data() + CfiBuilder::kHdrBytes,
             whole.size() - CfiBuilder::kHdrBytes);
      for (int change = 0; change < 3; ++change) {
        size_t at = random() % (whole.size() - CfiBuilder::kHdrBytes + 80);
        if (at >= 80) at += CfiBuilder::kHdrBytes - 80;
        guarded.data()[at] = static_cast<uint8_t>(random());
      }
      CfiRow row;
      const uintptr_t pc = kCode + random() % 0x200;
      if (FindRow(image, pc, &row) == CfiStatus::kOk) {
        EXPECT_LE(row.start, pc);
        EXPECT_GT(row.end, pc);
        if (row.cfa.is_expression) ExpressionBytes(image, row.cfa.value);
      }
    }
  }
}

}  // namespace
}  // namespace memtrace::unwind
