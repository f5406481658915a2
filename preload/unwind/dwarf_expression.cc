#include "preload/unwind/dwarf_expression.h"

namespace memtrace::unwind {
namespace {

enum : uint8_t {
  kAddr = 0x03, kDeref = 0x06, kConst1u = 0x08, kConst1s = 0x09, kConst2u = 0x0a,
  kConst2s = 0x0b, kConst4u = 0x0c, kConst4s = 0x0d, kConst8u = 0x0e, kConst8s = 0x0f,
  kConstu = 0x10, kConsts = 0x11, kDup = 0x12, kDrop = 0x13, kOver = 0x14, kPick = 0x15,
  kSwap = 0x16, kRot = 0x17, kAbs = 0x19, kAnd = 0x1a, kDiv = 0x1b, kMinus = 0x1c, kMod = 0x1d,
  kMul = 0x1e, kNeg = 0x1f, kNot = 0x20, kOr = 0x21, kPlus = 0x22, kPlusUconst = 0x23,
  kShl = 0x24, kShr = 0x25, kShra = 0x26, kXor = 0x27, kBra = 0x28, kEq = 0x29, kGe = 0x2a,
  kGt = 0x2b, kLe = 0x2c, kLt = 0x2d, kNe = 0x2e, kSkip = 0x2f, kLit0 = 0x30, kLit31 = 0x4f,
  kBreg0 = 0x70, kBreg31 = 0x8f, kBregx = 0x92, kDerefSize = 0x94, kNop = 0x96,
};

constexpr int kMaxDepth = 24;
constexpr int kMaxSteps = 512;

class Machine {
 public:
  Machine(ByteReader expression, const Registers& registers, StackReader* reader)
      : code_(expression), begin_(expression.at()), registers_(registers), reader_(reader) {}

  EvalStatus Run(const uint64_t* first, uint64_t* result) {
    if (first != nullptr) Push(*first);
    for (int steps = 0; !code_.at_end(); ++steps) {
      if (steps == kMaxSteps) return EvalStatus::kUnsupported;
      Step(code_.Byte());
      if (!code_.ok()) return EvalStatus::kUnsupported;
      if (status_ != EvalStatus::kOk) return status_;
    }
    if (depth_ == 0 || !code_.ok()) return EvalStatus::kUnsupported;
    *result = stack_[depth_ - 1];
    return status_;
  }

 private:
  void Fail(EvalStatus status) { status_ = status; }
  void Push(uint64_t value) {
    if (depth_ == kMaxDepth) return Fail(EvalStatus::kUnsupported);
    stack_[depth_++] = value;
  }
  uint64_t Pop() {
    if (depth_ == 0) {
      Fail(EvalStatus::kUnsupported);
      return 0;
    }
    return stack_[--depth_];
  }
  void Pick(int index) {
    if (index >= depth_) return Fail(EvalStatus::kUnsupported);
    Push(stack_[depth_ - 1 - index]);
  }
  void PushRegister(uint64_t reg, int64_t offset) {
    uint64_t value;
    if (reg >= kRegisterCount) return Fail(EvalStatus::kUnsupported);
    if (!registers_.known(static_cast<int>(reg))) return Fail(EvalStatus::kUnknown);
    if (!registers_.Read(static_cast<int>(reg), reader_, &value)) {
      return Fail(EvalStatus::kUnreadable);
    }
    Push(value + static_cast<uint64_t>(offset));
  }
  void Dereference(unsigned bytes) {
    const uintptr_t address = Pop();
    if (bytes == 0 || bytes > sizeof(uint64_t)) return Fail(EvalStatus::kUnsupported);
    uint64_t value = 0;
    if (status_ != EvalStatus::kOk) return;
    if (!reader_->Read(address, &value)) return Fail(EvalStatus::kUnreadable);
    Push(bytes == sizeof(value) ? value : value & ((uint64_t{1} << 8 * bytes) - 1));
  }
  void Jump(int64_t distance) {
    const int64_t target = (code_.at() - begin_) + distance;
    if (target < 0 || target > code_.end() - begin_) return Fail(EvalStatus::kUnsupported);
    code_ = ByteReader(begin_ + target, code_.end());
  }
  void Step(uint8_t op);
  void Binary(uint8_t op);

  ByteReader code_;
  const uint8_t* begin_;
  const Registers& registers_;
  StackReader* reader_;
  EvalStatus status_ = EvalStatus::kOk;
  int depth_ = 0;
  uint64_t stack_[kMaxDepth];
};

void Machine::Step(uint8_t op) {
  if (op >= kLit0 && op <= kLit31) return Push(op - kLit0);
  if (op >= kBreg0 && op <= kBreg31) return PushRegister(op - kBreg0, code_.Sleb());
  switch (op) {
    case kNop: return;
    case kAddr:
    case kConst8u:
    case kConst8s: return Push(code_.Fixed<uint64_t>());
    case kConst1u: return Push(code_.Fixed<uint8_t>());
    case kConst1s: return Push(static_cast<uint64_t>(int64_t{code_.Fixed<int8_t>()}));
    case kConst2u: return Push(code_.Fixed<uint16_t>());
    case kConst2s: return Push(static_cast<uint64_t>(int64_t{code_.Fixed<int16_t>()}));
    case kConst4u: return Push(code_.Fixed<uint32_t>());
    case kConst4s: return Push(static_cast<uint64_t>(int64_t{code_.Fixed<int32_t>()}));
    case kConstu: return Push(code_.Uleb());
    case kConsts: return Push(static_cast<uint64_t>(code_.Sleb()));
    case kBregx: {
      const uint64_t reg = code_.Uleb();
      return PushRegister(reg, code_.Sleb());
    }
    case kDeref: return Dereference(sizeof(uint64_t));
    case kDerefSize: return Dereference(code_.Byte());
    case kDup: return Pick(0);
    case kOver: return Pick(1);
    case kPick: return Pick(code_.Byte());
    case kDrop: Pop(); return;
    case kSwap: {
      const uint64_t top = Pop();
      const uint64_t second = Pop();
      Push(top);
      return Push(second);
    }
    case kRot: {
      const uint64_t top = Pop();
      const uint64_t second = Pop();
      const uint64_t third = Pop();
      Push(top);
      Push(third);
      return Push(second);
    }
    case kAbs: {
      const uint64_t value = Pop();
      return Push(static_cast<int64_t>(value) < 0 ? -value : value);
    }
    case kNeg: return Push(-Pop());
    case kNot: return Push(~Pop());
    case kPlusUconst: {
      const uint64_t value = Pop();
      return Push(value + code_.Uleb());
    }
    case kSkip: return Jump(code_.Fixed<int16_t>());
    case kBra: {
      const int16_t distance = code_.Fixed<int16_t>();
      if (Pop() != 0) Jump(distance);
      return;
    }
    default: return Binary(op);
  }
}

void Machine::Binary(uint8_t op) {
  const uint64_t b = Pop();
  const uint64_t a = Pop();
  if (status_ != EvalStatus::kOk) return;
  const auto sa = static_cast<int64_t>(a);
  const auto sb = static_cast<int64_t>(b);
  switch (op) {
    case kAnd: return Push(a & b);
    case kOr: return Push(a | b);
    case kXor: return Push(a ^ b);
    case kPlus: return Push(a + b);
    case kMinus: return Push(a - b);
    case kMul: return Push(a * b);
    case kDiv:
      if (b == 0 || (sb == -1 && sa == INT64_MIN)) return Fail(EvalStatus::kUnsupported);
      return Push(static_cast<uint64_t>(sa / sb));
    case kMod:
      if (b == 0) return Fail(EvalStatus::kUnsupported);
      return Push(a % b);
    case kShl: return Push(b < 64 ? a << b : 0);
    case kShr: return Push(b < 64 ? a >> b : 0);
    case kShra: return Push(static_cast<uint64_t>(sa >> (b < 64 ? b : 63)));
    case kEq: return Push(sa == sb);
    case kNe: return Push(sa != sb);
    case kGe: return Push(sa >= sb);
    case kGt: return Push(sa > sb);
    case kLe: return Push(sa <= sb);
    case kLt: return Push(sa < sb);
    default: return Fail(EvalStatus::kUnsupported);
  }
}

}  // namespace

EvalStatus EvaluateExpression(ByteReader expression, const Registers& registers,
                              StackReader* reader, const uint64_t* first, uint64_t* result) {
  if (!expression.ok()) return EvalStatus::kUnsupported;
  return Machine(expression, registers, reader).Run(first, result);
}

}  // namespace memtrace::unwind
