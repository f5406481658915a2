// CfiUnwinder: one step outwards from a full register state, by whatever CFI says.
//
// The slow, general half of the stack engine: all registers, all rules, DWARF
// expressions. It begins at the registers of a running function, usually its
// maker's own frame, whose CFI then gives rbx and r12 to r15 of the frames above.
//
// What it checks makes it end rather than guess: every stack word is readable, the
// CFA moves outwards by whole words except over a signal frame, the state changes.
//
// Threads: an object of one walk, on its own stack. No lock, no allocation.

#ifndef MEMTRACE_PRELOAD_UNWIND_CFI_UNWINDER_H_
#define MEMTRACE_PRELOAD_UNWIND_CFI_UNWINDER_H_

#include <cstdint>

#include "format/trace_format.h"
#include "preload/arch/arch.h"
#include "preload/unwind/dwarf_expression.h"
#include "preload/unwind/frame_rule.h"
#include "preload/unwind/registers.h"

namespace memtrace::unwind {

// What a walk knows of the frame that it has come to, besides how to go on from there.
struct FrameInfo {
  uint16_t tag = 0;         // module instance
  bool trampoline = false;  // of a signal, or the begin of a context: see PcOf()
};

enum class StepResult : uint8_t {
  kStepped,
  kEnd,     // complete: there is no outer frame
  kMarked,  // marker() says why it cannot go on
};

class CfiUnwinder {
 public:
  CfiUnwinder(const KeptRegisters& registers, StackBounds* bounds);

  uintptr_t pc() const { return point_.pc; }
  bool exact() const { return point_.exact; }
  uintptr_t sp() const { return sp_; }
  format::StackMarker marker() const { return marker_; }

  // Fills `info` about the present frame, then leaves it.
  StepResult Step(FrameInfo* info);

 private:
  StepResult Mark(format::StackMarker marker) {
    marker_ = marker;
    return StepResult::kMarked;
  }
  StepResult StepByRow(const CfiImage& image, const CfiRow& row);
  StepResult StepByRule(FrameRule rule);
  StepResult Leave(Registers* outer, bool over_signal);
  // `why_not`: the marker, if it does not.
  bool LeavesStack(uintptr_t pc, uintptr_t sp, format::StackMarker* why_not);
  bool Cfa(const CfiImage& image, const CfaRule& rule, uint64_t* cfa);
  bool Apply(const CfiImage& image, int reg, const CfiRule& rule, uint64_t cfa, Registers* outer);
  bool Check(EvalStatus status);

  CodePoint point_;
  uintptr_t sp_;
  bool cfa_is_computed_ = false;  // of the frame that is left: by an expression
  uint16_t stacks_left_ = 256;  // may be left so often: a walk of nonsense ends
  Registers registers_;
  StackReader reader_;
  format::StackMarker marker_ = format::StackMarker::kNone;
};

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_CFI_UNWINDER_H_
