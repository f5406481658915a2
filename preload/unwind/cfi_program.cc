// The CFA program of an FDE, run up to a pc. See cfi_reader.h.

#include "preload/unwind/cfi_reader.h"

namespace memtrace::unwind {
namespace {

enum : uint8_t {
  // The upper two bits, with an operand in the lower six.
  kAdvanceLoc = 0x40, kOffset = 0x80, kRestore = 0xc0,
  kNop = 0x00, kSetLoc = 0x01, kAdvanceLoc1 = 0x02, kAdvanceLoc2 = 0x03, kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05, kRestoreExtended = 0x06, kUndefined = 0x07, kSameValue = 0x08,
  kRegister = 0x09, kRememberState = 0x0a, kRestoreState = 0x0b, kDefCfa = 0x0c,
  kDefCfaRegister = 0x0d, kDefCfaOffset = 0x0e, kDefCfaExpression = 0x0f, kExpression = 0x10,
  kOffsetExtendedSf = 0x11, kDefCfaSf = 0x12, kDefCfaOffsetSf = 0x13, kValOffset = 0x14,
  kValOffsetSf = 0x15, kValExpression = 0x16, kMipsAdvanceLoc8 = 0x1d, kGnuArgsSize = 0x2e,
  kGnuNegativeOffsetExtended = 0x2f,
};

struct RuleSet {
  CfaRule cfa;
  CfiRule registers[kRegisterCount];
};

class Program {
 public:
  Program(const CfiImage& image, const Fde& fde, uintptr_t pc, CfiRow* row)
      : image_(image), fde_(fde), pc_(pc), row_(row) {}

  CfiStatus Run() {
    location_ = fde_.start;
    in_cie_ = true;
    CfiStatus status = Execute(fde_.cie.program);
    if (status != CfiStatus::kOk) return status;
    memcpy(initial_, now_.registers, sizeof(initial_));
    in_cie_ = false;
    location_ = fde_.start;
    row_->start = fde_.start;
    row_->end = fde_.end;
    status = Execute(fde_.program);
    if (status != CfiStatus::kOk) return status;
    if (!cfa_defined_) return CfiStatus::kMalformed;
    row_->fde_start = fde_.start;
    row_->fde_end = fde_.end;
    row_->ra_register = static_cast<uint8_t>(fde_.cie.ra_register);
    row_->signal_frame = fde_.cie.signal_frame;
    row_->cfa = now_.cfa;
    memcpy(row_->registers, now_.registers, sizeof(row_->registers));
    return CfiStatus::kOk;
  }

 private:
  // Moves to a later row; true when the row of the pc is complete.
  bool AdvanceTo(uintptr_t location) {
    location_ = location;
    if (in_cie_) return false;
    if (location > pc_) {
      row_->end = location;
      return true;
    }
    row_->start = location;
    return false;
  }
  bool Advance(uint64_t delta) { return AdvanceTo(location_ + delta * fde_.cie.code_alignment); }

  void SetRule(uint64_t reg, RuleKind kind, int64_t value) {
    if (value != static_cast<int32_t>(value)) status_ = CfiStatus::kUnsupported;
    if (reg >= kRegisterCount) return;  // vector registers and the like
    now_.registers[reg] = {kind, static_cast<int32_t>(value)};
  }
  void RestoreRule(uint64_t reg) {
    if (in_cie_) status_ = CfiStatus::kMalformed;
    if (reg < kRegisterCount) now_.registers[reg] = initial_[reg];
  }
  // ULEB128 factors: the product may be negative.
  int64_t Factored(uint64_t value) const {
    return static_cast<int64_t>(value * static_cast<uint64_t>(fde_.cie.data_alignment));
  }
  void SetCfa(uint64_t reg, int64_t offset) {
    if (reg >= kRegisterCount) {
      status_ = CfiStatus::kUnsupported;
      return;
    }
    now_.cfa = {false, static_cast<uint8_t>(reg), offset};
    cfa_defined_ = true;
  }
  void ChangeCfa(uint64_t reg, int64_t offset) {
    if (!cfa_defined_ || now_.cfa.is_expression) {
      status_ = CfiStatus::kMalformed;
      return;
    }
    SetCfa(reg, offset);
  }
  int64_t ExpressionAt(ByteReader* reader) {
    const auto offset = reader->at() - image_.data;
    if (offset != static_cast<uint32_t>(offset)) status_ = CfiStatus::kUnsupported;
    reader->Skip(reader->Uleb());
    return static_cast<int32_t>(static_cast<uint32_t>(offset));
  }

  CfiStatus Execute(ByteReader reader);
  bool ExecuteOther(uint8_t opcode, ByteReader* reader);

  const CfiImage& image_;
  const Fde& fde_;
  const uintptr_t pc_;
  CfiRow* const row_;

  CfiStatus status_ = CfiStatus::kOk;
  bool in_cie_ = true;
  bool cfa_defined_ = false;
  uintptr_t location_ = 0;
  int remembered_count_ = 0;
  RuleSet now_;
  CfiRule initial_[kRegisterCount];
  RuleSet remembered_[kMaxRememberedStates];
};

CfiStatus Program::Execute(ByteReader reader) {
  remembered_count_ = 0;
  while (!reader.at_end()) {
    const uint8_t opcode = reader.Byte();
    const uint8_t operand = opcode & 0x3f;
    bool done = false;
    switch (opcode & 0xc0) {
      case kAdvanceLoc: done = Advance(operand); break;
      case kOffset: SetRule(operand, RuleKind::kOffset, Factored(reader.Uleb())); break;
      case kRestore: RestoreRule(operand); break;
      default: done = ExecuteOther(opcode, &reader);
    }
    if (!reader.ok()) return CfiStatus::kMalformed;
    if (status_ != CfiStatus::kOk) return status_;
    if (done) break;
  }
  return CfiStatus::kOk;
}

bool Program::ExecuteOther(uint8_t opcode, ByteReader* reader) {
  switch (opcode) {
    case kNop: return false;
    case kSetLoc: {
      // Written like the start of the FDE; absolute or relative to here.
      const uintptr_t here = image_.AddressOf(reader->at());
      const uint8_t encoding = fde_.cie.fde_encoding;
      if (encoding == 0x1b) return AdvanceTo(here + static_cast<uintptr_t>(
                                                        int64_t{reader->Fixed<int32_t>()}));
      if (encoding == 0x00) return AdvanceTo(reader->Fixed<uint64_t>());
      status_ = CfiStatus::kUnsupported;
      return true;
    }
    case kAdvanceLoc1: return Advance(reader->Fixed<uint8_t>());
    case kAdvanceLoc2: return Advance(reader->Fixed<uint16_t>());
    case kAdvanceLoc4: return Advance(reader->Fixed<uint32_t>());
    case kMipsAdvanceLoc8: return Advance(reader->Fixed<uint64_t>());
    case kDefCfa: {
      const uint64_t reg = reader->Uleb();
      SetCfa(reg, static_cast<int64_t>(reader->Uleb()));
      return false;
    }
    case kDefCfaSf: {
      const uint64_t reg = reader->Uleb();
      SetCfa(reg, Factored(static_cast<uint64_t>(reader->Sleb())));
      return false;
    }
    case kDefCfaRegister: ChangeCfa(reader->Uleb(), now_.cfa.value); return false;
    case kDefCfaOffset:
      ChangeCfa(now_.cfa.reg, static_cast<int64_t>(reader->Uleb()));
      return false;
    case kDefCfaOffsetSf:
      ChangeCfa(now_.cfa.reg, Factored(static_cast<uint64_t>(reader->Sleb())));
      return false;
    case kDefCfaExpression:
      now_.cfa = {true, kRsp, ExpressionAt(reader)};
      cfa_defined_ = true;
      return false;
    case kRememberState:
      if (remembered_count_ == kMaxRememberedStates) {
        status_ = CfiStatus::kUnsupported;
        return true;
      }
      remembered_[remembered_count_++] = now_;
      return false;
    case kRestoreState:
      if (remembered_count_ == 0) {
        status_ = CfiStatus::kMalformed;
        return true;
      }
      now_ = remembered_[--remembered_count_];
      return false;
    case kGnuArgsSize: reader->Uleb(); return false;
    default: break;
  }
  // The instructions that are left begin with a register.
  const uint64_t reg = reader->Uleb();
  switch (opcode) {
    case kOffsetExtended:
      SetRule(reg, RuleKind::kOffset, Factored(reader->Uleb()));
      return false;
    case kOffsetExtendedSf:
      SetRule(reg, RuleKind::kOffset, Factored(static_cast<uint64_t>(reader->Sleb())));
      return false;
    case kGnuNegativeOffsetExtended:
      SetRule(reg, RuleKind::kOffset, -Factored(reader->Uleb()));
      return false;
    case kValOffset:
      SetRule(reg, RuleKind::kValOffset, Factored(reader->Uleb()));
      return false;
    case kValOffsetSf:
      SetRule(reg, RuleKind::kValOffset, Factored(static_cast<uint64_t>(reader->Sleb())));
      return false;
    case kRestoreExtended: RestoreRule(reg); return false;
    case kUndefined: SetRule(reg, RuleKind::kUndefined, 0); return false;
    case kSameValue: SetRule(reg, RuleKind::kSame, 0); return false;
    case kRegister: {
      const uint64_t source = reader->Uleb();
      if (source >= kRegisterCount) status_ = CfiStatus::kUnsupported;
      SetRule(reg, RuleKind::kRegister, static_cast<int64_t>(source & 0xff));
      return false;
    }
    case kExpression: SetRule(reg, RuleKind::kExpression, ExpressionAt(reader)); return false;
    case kValExpression:
      SetRule(reg, RuleKind::kValExpression, ExpressionAt(reader));
      return false;
    default: status_ = CfiStatus::kUnsupported; return true;
  }
}

}  // namespace

CfiStatus RunProgram(const CfiImage& image, const Fde& fde, uintptr_t pc, CfiRow* row) {
  return Program(image, fde, pc, row).Run();
}

}  // namespace memtrace::unwind
