#include "preload/unwind/cfi_unwinder.h"

#include <dlfcn.h>

namespace memtrace::unwind {

using format::StackMarker;

// More than the frames from here to the tracer's take.
constexpr uintptr_t kFarBelow = 64 << 10;

CfiUnwinder::CfiUnwinder(const KeptRegisters& kept, StackBounds* bounds)
    : point_{kept.rip, true}, sp_(kept.rsp), reader_(bounds, kept.rsp) {
  // Caller-saved registers stay unknown: nothing says what they are here.
  registers_.SetValue(kRsp, kept.rsp);
  registers_.SetValue(kRbp, kept.rbp);
  registers_.SetValue(kRbx, kept.rbx);
  registers_.SetValue(kR12, kept.r12);
  registers_.SetValue(kR13, kept.r13);
  registers_.SetValue(kR14, kept.r14);
  registers_.SetValue(kR15, kept.r15);
  registers_.SetValue(kRip, kept.rip);
}

bool CfiUnwinder::Check(EvalStatus status) {
  switch (status) {
    case EvalStatus::kOk: return true;
    case EvalStatus::kUnreadable: marker_ = StackMarker::kUnreadable; return false;
    default: marker_ = StackMarker::kUnsupported; return false;
  }
}

bool CfiUnwinder::Cfa(const CfiImage& image, const CfaRule& rule, uint64_t* cfa) {
  if (rule.is_expression) {
    return Check(EvaluateExpression(ExpressionBytes(image, rule.value), registers_, &reader_,
                                    nullptr, cfa));
  }
  if (!registers_.known(rule.reg)) return Check(EvalStatus::kUnknown);
  if (!registers_.Read(rule.reg, &reader_, cfa)) return Check(EvalStatus::kUnreadable);
  *cfa += static_cast<uint64_t>(rule.value);
  return true;
}

bool CfiUnwinder::Apply(const CfiImage& image, int reg, const CfiRule& rule, uint64_t cfa,
                        Registers* outer) {
  const uint64_t at = cfa + static_cast<uint64_t>(int64_t{rule.value});
  switch (rule.kind) {
    case RuleKind::kUnspecified:
      // Outside, the stack pointer is the CFA. What CFI leaves out is unchanged.
      if (reg == kRsp) {
        outer->SetValue(reg, cfa);
      } else {
        outer->Copy(reg, registers_, reg);
      }
      return true;
    case RuleKind::kSame: outer->Copy(reg, registers_, reg); return true;
    case RuleKind::kUndefined: outer->SetUnknown(reg); return true;
    case RuleKind::kOffset: outer->SetMemory(reg, at); return true;
    case RuleKind::kValOffset: outer->SetValue(reg, at); return true;
    case RuleKind::kRegister: outer->Copy(reg, registers_, rule.value); return true;
    case RuleKind::kExpression:
    case RuleKind::kValExpression: {
      uint64_t value;
      const EvalStatus status = EvaluateExpression(ExpressionBytes(image, rule.value), registers_,
                                                   &reader_, &cfa, &value);
      // One lost register is no reason to end, unless a later rule needs it.
      if (status == EvalStatus::kUnknown) {
        outer->SetUnknown(reg);
        return true;
      }
      if (!Check(status)) return false;
      if (rule.kind == RuleKind::kExpression) {
        outer->SetMemory(reg, value);
      } else {
        outer->SetValue(reg, value);
      }
      return true;
    }
  }
  return Check(EvalStatus::kUnsupported);
}

StepResult CfiUnwinder::StepByRow(const CfiImage& image, const CfiRow& row) {
  uint64_t cfa;
  if (!Cfa(image, row.cfa, &cfa)) return StepResult::kMarked;
  Registers outer;
  for (int reg = 0; reg < kRegisterCount; ++reg) {
    if (!Apply(image, reg, row.registers[reg], cfa, &outer)) return StepResult::kMarked;
  }
  outer.Copy(kRip, outer, row.ra_register);
  cfa_is_computed_ = row.cfa.is_expression;
  return Leave(&outer, row.signal_frame);
}

StepResult CfiUnwinder::StepByRule(FrameRule rule) {
  Registers outer;
  cfa_is_computed_ = false;
  for (int reg = 0; reg < kRegisterCount; ++reg) {
    if (rule.flags & kSignal) {
      outer.SetMemory(reg, sp_ + static_cast<uintptr_t>(kUcontextOffset[reg]));
    } else {
      outer.Copy(reg, registers_, reg);
    }
  }
  if (!(rule.flags & kSignal)) {  // a stub that pushed nothing but its arguments, or rbp's frame
    uint64_t base = sp_;
    if (rule.flags & kCfaFromRbp) {
      if (!registers_.known(kRbp)) return Mark(StackMarker::kUnsupported);
      if (!registers_.Read(kRbp, &reader_, &base)) return Mark(StackMarker::kUnreadable);
    }
    const uintptr_t cfa = base + static_cast<uintptr_t>(int64_t{rule.cfa_offset});
    outer.SetMemory(kRip, cfa - 8);
    outer.SetValue(kRsp, cfa);
    if (rule.flags & kRbpSaved) {
      outer.SetMemory(kRbp, cfa + static_cast<uintptr_t>(int64_t{rule.rbp_words} * 8));
    }
  }
  return Leave(&outer, (rule.flags & kSignal) != 0);
}

// The same as FastWalk's. The reads of the frame may have moved the window to the
// other stack already.
bool CfiUnwinder::LeavesStack(uintptr_t pc, uintptr_t sp, StackMarker* why_not) {
  *why_not = StackMarker::kInconsistent;
  if (stacks_left_ == 0) return false;
  --stacks_left_;
  dl_find_object code;
  const bool is_known = _dl_find_object(reinterpret_cast<void*>(pc - 1), &code) == 0;
  reader_.Enter(sp_);
  const bool was_primary = reader_.on_primary_stack();
  const bool is_near = reader_.Contains(sp - sizeof(uint64_t));
  if (!is_near) reader_.Enter(sp);
  const bool is_primary = reader_.on_primary_stack();
  if (is_known) return !is_near && !(was_primary && is_primary);
  // Of two places outside of the thread's own stack nobody knows whether they are of one; and a
  // program may have two stacks within that. But far below there is nothing of this one any more,
  // and CFI that computes the CFA means it.
  const bool is_other = was_primary != is_primary || (cfa_is_computed_ && sp_ - sp > kFarBelow);
  if (is_other && reader_.Contains(sp)) *why_not = StackMarker::kOtherStack;
  return false;
}

StepResult CfiUnwinder::Leave(Registers* outer, bool over_signal) {
  uint64_t pc;
  uint64_t sp;
  if (!outer->known(kRip) || !outer->known(kRsp)) return Mark(StackMarker::kUnsupported);
  if (!outer->Read(kRip, &reader_, &pc)) return Mark(StackMarker::kUnreadable);
  if (!outer->Read(kRsp, &reader_, &sp)) return Mark(StackMarker::kUnreadable);
  if (pc == 0) return Mark(MarkerOfNoReturn(reader_.on_primary_stack()));
  if (pc >> kAddressBits != 0 || sp % 8 != 0) return Mark(StackMarker::kInconsistent);
  StackMarker why_not;
  if (over_signal) {
    if (pc == point_.pc && sp == sp_) return Mark(StackMarker::kInconsistent);
    reader_.Enter(sp);
  } else if (sp <= sp_ && !(point_.exact && sp == sp_ && pc != point_.pc) &&
             !LeavesStack(pc, sp, &why_not)) {
    // Only code that was interrupted may have its return address in a register.
    return Mark(why_not);
  }
  outer->SetValue(kRip, pc);
  outer->SetValue(kRsp, sp);
  registers_ = *outer;
  point_ = {pc, over_signal};
  sp_ = sp;
  return StepResult::kStepped;
}

StepResult CfiUnwinder::Step(FrameInfo* info) {
  CfiImage image;
  CfiRow row;
  const Resolution found = ResolveRule(point_, &image, &row);
  info->tag = found.tag;
  info->trampoline = (found.rule.flags & (kSignal | kContextEnd)) != 0 ||
                     (found.has_row && row.signal_frame);
  if (found.status == CfiStatus::kUnsupported) return Mark(StackMarker::kUnsupported);
  if (found.status != CfiStatus::kOk) return Mark(StackMarker::kNoUnwindInfo);
  const uint16_t flags = found.rule.flags;
  if (flags & kEnd) return StepResult::kEnd;
  if (flags & kContextEnd) return Mark(StackMarker::kContextEnd);
  if (flags & kProcessEntry) {
    return IsProcessEntry(sp_) ? StepResult::kEnd : Mark(StackMarker::kNoUnwindInfo);
  }
  return found.has_row ? StepByRow(image, row) : StepByRule(found.rule);
}

}  // namespace memtrace::unwind
