// FindLineRows(): header, opcodes, rows. See line_program.h.

#include "symbolizer/line_program.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <optional>

#include "symbolizer/byte_cursor.h"

namespace memtrace::symbolizer {
namespace {

struct LineHeader {
  uint8_t least_instruction_bytes = 1;
  uint8_t most_operations = 1;  // in an instruction; more than one on VLIW machines
  int8_t line_base = 0;
  uint8_t line_range = 1;
  uint8_t opcode_base = 1;
  std::array<uint8_t, 256> operands = {};  // of the standard opcodes
  std::string_view program;
};

// Directories and files are left to libdw: the header says where they end.
std::optional<LineHeader> ReadLineHeader(std::string_view section, uint64_t offset) {
  if (offset >= section.size()) return std::nullopt;
  ByteCursor start(section.substr(offset));
  size_t offset_bytes = 4;
  uint64_t unit_bytes = start.Fixed(4);
  if (unit_bytes == 0xffffffff) {
    offset_bytes = 8;
    unit_bytes = start.Fixed(8);
  }
  if (!start.ok() || unit_bytes > start.left()) return std::nullopt;
  const std::string_view unit = section.substr(offset + start.position(), unit_bytes);
  ByteCursor cursor(unit);
  const uint64_t version = cursor.Fixed(2);
  if (version < 2 || version > 5) return std::nullopt;
  if (version >= 5) cursor.Skip(2);  // sizes of an address and of a segment selector
  const uint64_t header_bytes = cursor.Fixed(offset_bytes);
  const size_t header_begin = cursor.position();
  if (!cursor.ok() || header_bytes > cursor.left()) return std::nullopt;
  LineHeader header;
  header.least_instruction_bytes = static_cast<uint8_t>(cursor.Fixed(1));
  if (version >= 4) header.most_operations = static_cast<uint8_t>(cursor.Fixed(1));
  cursor.Skip(1);  // is a row a statement by default?
  header.line_base = static_cast<int8_t>(cursor.Fixed(1));
  header.line_range = static_cast<uint8_t>(cursor.Fixed(1));
  header.opcode_base = static_cast<uint8_t>(cursor.Fixed(1));
  for (size_t i = 1; i < header.opcode_base; ++i) {
    header.operands[i] = static_cast<uint8_t>(cursor.Fixed(1));
  }
  if (!cursor.ok() || header.line_range == 0 || header.most_operations == 0 ||
      header.opcode_base == 0 || cursor.position() - header_begin > header_bytes) {
    return std::nullopt;
  }
  header.program = unit.substr(header_begin + header_bytes);
  return header;
}

// Takes the rows in the order of the program, and gives each wanted address its row.
class RowSink {
 public:
  RowSink(const CodeRanges& code, std::span<const uint64_t> wanted, std::span<LineRow> rows)
      : code_(code), wanted_(wanted), rows_(rows), missing_(wanted.size()) {}

  bool HasAll() const { return missing_ == 0; }

  void Add(uint64_t address, const LineRow& row, bool ends_sequence) {
    if (!in_sequence_) {
      is_code_ = code_.Has(address);
      MoveTo(address);
    } else if (is_code_ && address < address_) {  // not allowed, but libdw would sort it
      MoveTo(address);
    } else if (is_code_) {
      // If several rows have one address, the last one holds.
      for (; at_ < wanted_.size() && wanted_[at_] < address; ++at_) {
        if (passed_ == kMostPassed) return;
        if (rows_[at_].found) {
          ++passed_;
          continue;
        }
        rows_[at_] = row_;
        --missing_;
      }
    }
    in_sequence_ = !ends_sequence;
    address_ = address;
    row_ = row;
  }

 private:
  void MoveTo(uint64_t address) {
    at_ = static_cast<size_t>(std::lower_bound(wanted_.begin(), wanted_.end(), address) -
                              wanted_.begin());
  }

  const CodeRanges& code_;
  const std::span<const uint64_t> wanted_;
  const std::span<LineRow> rows_;
  static constexpr size_t kMostPassed = size_t{1} << 26;

  size_t missing_;
  size_t passed_ = 0;  // wanted addresses that had a row, in all; a hostile table goes to and fro
  bool in_sequence_ = false, is_code_ = false;
  size_t at_ = 0;         // the first wanted address that the row before reaches
  uint64_t address_ = 0;  // of the row before, in this sequence
  LineRow row_;
};

// The registers that matter here.
struct Registers {
  uint64_t address = 0;
  uint64_t operation = 0;
  uint64_t file = 1;
  uint64_t line = 1;

  void Advance(const LineHeader& header, uint64_t operations) {
    if (header.most_operations == 1) {
      address += operations * header.least_instruction_bytes;
      return;
    }
    const uint64_t sum = operation + operations;
    address += sum / header.most_operations * header.least_instruction_bytes;
    operation = sum % header.most_operations;
  }
  LineRow Row() const {
    return {true, file, line <= INT32_MAX ? static_cast<uint32_t>(line) : 0};
  }
};

// The cursor is behind the opcode 0.
void RunExtended(ByteCursor* cursor, Registers* registers, RowSink* sink) {
  const uint64_t bytes = cursor->Leb();
  if (bytes == 0 || bytes > cursor->left()) {
    cursor->Skip(UINT64_MAX);
    return;
  }
  const uint64_t operand_bytes = bytes - 1;
  switch (cursor->Fixed(1)) {
    case DW_LNE_end_sequence:
      sink->Add(registers->address, registers->Row(), /*ends_sequence=*/true);
      *registers = Registers();
      cursor->Skip(operand_bytes);
      break;
    case DW_LNE_set_address:
      registers->address = operand_bytes <= 8 ? cursor->Fixed(operand_bytes) : 0;
      registers->operation = 0;
      if (operand_bytes > 8) cursor->Skip(operand_bytes);
      break;
    default:  // discriminators, and files, which libdw adds to its table as well
      cursor->Skip(operand_bytes);
      break;
  }
}

// False: no opcode of that number with that many operands is known.
bool RunStandard(uint8_t opcode, const LineHeader& header, ByteCursor* cursor,
                 Registers* registers, RowSink* sink) {
  static constexpr uint8_t kOperands[] = {0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
  if (opcode >= std::size(kOperands) || header.operands[opcode] != kOperands[opcode]) return false;
  switch (opcode) {
    case DW_LNS_copy:
      sink->Add(registers->address, registers->Row(), /*ends_sequence=*/false);
      break;
    case DW_LNS_advance_pc:
      registers->Advance(header, cursor->Leb());
      break;
    case DW_LNS_advance_line:
      registers->line += static_cast<uint64_t>(cursor->SignedLeb());
      break;
    case DW_LNS_set_file:
      registers->file = cursor->Leb();
      break;
    case DW_LNS_const_add_pc:
      registers->Advance(header, (255u - header.opcode_base) / header.line_range);
      break;
    case DW_LNS_fixed_advance_pc:
      registers->address += cursor->Fixed(2);
      registers->operation = 0;
      break;
    case DW_LNS_set_column:
    case DW_LNS_set_isa:
      cursor->SkipLeb();
      break;
    default:  // marks of statements, blocks, prologues and epilogues
      break;
  }
  return true;
}

}  // namespace

bool FindLineRows(std::string_view section, uint64_t offset, const CodeRanges& code,
                  std::span<const uint64_t> wanted, std::span<LineRow> rows) {
  const std::optional<LineHeader> header = ReadLineHeader(section, offset);
  if (!header.has_value()) return false;
  ByteCursor cursor(header->program);
  Registers registers;
  RowSink sink(code, wanted, rows);
  while (!cursor.AtEnd() && !sink.HasAll()) {
    const uint8_t opcode = static_cast<uint8_t>(cursor.Fixed(1));
    if (opcode >= header->opcode_base) {
      const uint8_t special = static_cast<uint8_t>(opcode - header->opcode_base);
      registers.Advance(*header, special / header->line_range);
      registers.line += static_cast<uint64_t>(
          int64_t{header->line_base} + special % header->line_range);
      sink.Add(registers.address, registers.Row(), /*ends_sequence=*/false);
    } else if (opcode == 0) {
      RunExtended(&cursor, &registers, &sink);
    } else if (!RunStandard(opcode, *header, &cursor, &registers, &sink)) {
      for (uint8_t i = 0; i < header->operands[opcode]; ++i) cursor.SkipLeb();
    }
  }
  return cursor.ok();
}

}  // namespace memtrace::symbolizer
