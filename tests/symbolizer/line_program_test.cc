// FindLineRows() on programs written by hand, whole and damaged.

#include "symbolizer/line_program.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"

namespace memtrace::symbolizer {
namespace {

template <typename T>
std::string Bytes(T number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof number);
}

std::string At(uint64_t address) {
  return absl::StrCat(std::string("\x00\x09\x02", 3), Bytes(address));
}
const std::string kEnd("\x00\x01\x01", 3);
constexpr uint8_t kFirstSpecial = 13;

// A special opcode of the header below: line_base -3, line_range 12.
std::string Row(int address_more, int line_more) {
  return std::string(1, static_cast<char>(kFirstSpecial + line_more + 3 + 12 * address_more));
}

// With tables of directories and files that are not read.
std::string Program(int version, bool dwarf64, const std::string& opcodes) {
  std::string rest = "\x01";                          // smallest instruction
  if (version >= 4) rest += '\x01';                   // operations in one
  rest += std::string("\x01\xfd\x0c\x0d", 4);         // is_stmt, base, range, first special
  rest += std::string("\0\1\1\1\1\0\0\0\1\0\0\1", 12);  // operands of 1 to 12
  rest += std::string("\0file.c\0\0\0\0\0", 12);
  std::string unit = Bytes(static_cast<uint16_t>(version));
  if (version >= 5) unit += std::string("\x08\x00", 2);
  unit += dwarf64 ? Bytes(uint64_t{rest.size()}) : Bytes(static_cast<uint32_t>(rest.size()));
  unit += rest + opcodes;
  return (dwarf64 ? absl::StrCat("\xff\xff\xff\xff", Bytes(uint64_t{unit.size()}))
                  : Bytes(static_cast<uint32_t>(unit.size()))) +
         unit;
}

// "7 - 9": the lines of addresses; "-" where there is none, "f2:" before it where the file is not 1.
std::string Lines(std::string_view section, uint64_t offset, const std::vector<uint64_t>& wanted,
                  bool* ok = nullptr) {
  const CodeRanges code({{0x1000, 0x2000}, {0x5000, 0x6000}});
  std::vector<LineRow> rows(wanted.size());
  const bool whole = FindLineRows(section, offset, code, wanted, rows);
  if (ok != nullptr) *ok = whole;
  std::string text;
  for (const LineRow& row : rows) {
    absl::StrAppend(&text, text.empty() ? "" : " ");
    if (row.found && row.file != 1) absl::StrAppend(&text, "f", row.file, ":");
    absl::StrAppend(&text, row.found ? absl::StrCat(row.line) : "-");
  }
  return text;
}

TEST(LineProgramTest, IsReadInEveryVersion) {
  const std::string opcodes = At(0x1000) + Row(0, 6) + Row(4, 1) + Row(4, 2) + Row(2, 0) + kEnd;
  for (int version = 2; version <= 5; ++version) {
    for (const bool dwarf64 : {false, true}) {
      bool ok = false;
      EXPECT_EQ(Lines(Program(version, dwarf64, opcodes), 0,
                      {0xfff, 0x1000, 0x1003, 0x1004, 0x1008, 0x1009, 0x100a, 0x100b}, &ok),
                "- 7 7 8 10 10 - -") << version << " " << dwarf64;
      EXPECT_TRUE(ok);
    }
  }
  bool ok = true;
  EXPECT_EQ(Lines(Program(6, false, opcodes), 0, {0x1000}, &ok), "-");
  EXPECT_FALSE(ok);
}

TEST(LineProgramTest, ItsOpcodesDoWhatTheyAreFor) {
  const std::string opcodes =
      At(0x1000) +
      std::string("\x03\xe3\x00\x01", 4) +  // advance_line 99, copy
      std::string("\x02\x90\x01", 3) +      // advance_pc 0x90
      std::string("\x04\x02\x05\x07\x06\x07\x0a\x0b\x0c\x03\x01", 11) +  // file 2 and marks; copy
      std::string("\x08\x01", 2) +              // const_add_pc 20, copy
      std::string("\x09\x00\x01\x03\x7f\x01", 6) +  // fixed_advance_pc 0x100, line - 1, copy
      std::string("\x00\x02\x04\x07", 4) +      // a discriminator
      Row(1, 0) + kEnd;
  bool ok = false;
  EXPECT_EQ(Lines(Program(4, false, opcodes), 0,
                  {0x1000, 0x108f, 0x1090, 0x10a3, 0x10a4, 0x11a3, 0x11a4, 0x11a5}, &ok),
            "100 100 f2:100 f2:100 f2:100 f2:100 f2:99 -");
  EXPECT_TRUE(ok);
}

TEST(LineProgramTest, OfRowsAtOneAddressTheLastHolds) {
  EXPECT_EQ(Lines(Program(4, false, At(0x1000) + Row(0, 1) + Row(0, 5) + Row(3, 1) + kEnd), 0,
                  {0x1000}), "7");
}

TEST(LineProgramTest, SequencesThatDoNotBeginInCodeCountForNothing) {
  const std::string removed =  // reaches over all of the first range
      At(0) + Row(0, 1) + std::string("\x02\x80\x20", 3) + Row(0, 1) + std::string("\x02\x80\x40", 3) + kEnd;
  const std::string kept = At(0x1100) + Row(0, 8) + Row(8, 0) + kEnd;
  const std::vector<uint64_t> wanted = {0x10ff, 0x1100, 0x1107, 0x1108, 0x1500};
  EXPECT_EQ(Lines(Program(5, false, removed + kept), 0, wanted), "- 9 9 - -");
  EXPECT_EQ(Lines(Program(5, false, kept + removed), 0, wanted), "- 9 9 - -");
  const std::string at_minus_1 = At(UINT64_MAX) + Row(0, 1) + std::string("\x02\x80\x40", 3) + kEnd;
  EXPECT_EQ(Lines(Program(5, false, at_minus_1), 0, wanted), "- - - - -");
}

TEST(LineProgramTest, TheFirstOfOverlappingSequencesHasTheAddress) {
  const auto sequence = [](uint64_t at, int line, int bytes) {
    return At(at) + Row(0, line - 1) + Row(bytes, 0) + kEnd;
  };
  EXPECT_EQ(Lines(Program(5, false, sequence(0x1004, 5, 4) + sequence(0x1000, 7, 12)), 0,
                  {0x1000, 0x1003, 0x1004, 0x1007, 0x1008, 0x100b, 0x100c}),
            "7 7 5 5 7 7 -");
}

TEST(LineProgramTest, AnAddressThatFallsWithinASequenceIsStillFound) {
  EXPECT_EQ(Lines(Program(5, false, At(0x5000) + Row(0, 1) + Row(4, 1) + At(0x1000) + Row(0, 1) +
                                        Row(4, 1) + kEnd), 0, {0x1000, 0x1003, 0x5000, 0x5003, 0x5004}),
            "4 4 2 2 -");
}

TEST(LineProgramTest, OperandsOfUnknownOpcodesAreSteppedOver) {
  std::string program = Program(4, false, At(0x1000) + std::string("\x0d\x80\x01\x05", 4) + std::string("\x01", 1) +
                                              std::string("\x02\x04\x01", 3) + kEnd);
  // One standard opcode more, of two operands, in place of a byte of the tables that follow.
  const size_t first_special = program.find(std::string("\xfd\x0c\x0d", 3)) + 2;
  program[first_special] = 14;
  program.insert(first_special + 13, 1, '\x02');
  program.erase(first_special + 14, 1);
  bool ok = false;
  EXPECT_EQ(Lines(program, 0, {0x1000, 0x1003}, &ok), "1 1");
  EXPECT_TRUE(ok);
}

TEST(LineProgramTest, DamageEndsIt) {
  const std::string opcodes = At(0x1000) + Row(0, 6) + Row(4, 1) + Row(4, 2) + kEnd;
  const std::string whole = Program(4, false, opcodes);
  bool ok = true;
  EXPECT_EQ(Lines(whole, whole.size(), {0x1000}, &ok), "-");
  EXPECT_FALSE(ok);
  EXPECT_EQ(Lines(whole, UINT64_MAX, {0x1000}, &ok), "-");
  EXPECT_FALSE(ok);
  std::string no_range = whole;
  no_range[whole.find(std::string("\xfd\x0c\x0d", 3)) + 1] = 0;
  EXPECT_EQ(Lines(no_range, 0, {0x1000}, &ok), "-");
  EXPECT_FALSE(ok);
  EXPECT_EQ(Lines(Program(4, false, At(0x1000) + Row(0, 6) + Row(4, 1) + std::string("\x00\x50\x02", 3)),
                  0, {0x1000, 0x1004}, &ok), "7 -");
  EXPECT_FALSE(ok);
}

TEST(LineProgramTest, AnyBytesAreAProgram) {
  const std::string whole = Program(5, false, At(0x1000) + Row(0, 6) + Row(4, 1) + kEnd + At(0x5000) +
                                                  Row(0, 1) + Row(7, 1) + kEnd);
  std::vector<uint64_t> wanted;
  for (uint64_t address = 0xff0; address < 0x1020; ++address) wanted.push_back(address);
  for (uint64_t address = 0x5000; address < 0x5010; ++address) wanted.push_back(address);
  for (size_t cut = 0; cut < whole.size(); ++cut) Lines(whole.substr(0, cut), 0, wanted);
  std::mt19937 random(11);
  for (int round = 0; round < 100000; ++round) {
    std::string changed = whole;
    const int changes = 1 << (random() % 5);
    for (int i = 0; i < changes; ++i) changed[random() % changed.size()] = static_cast<char>(random());
    Lines(changed, 0, wanted);
  }
}

}  // namespace
}  // namespace memtrace::symbolizer
