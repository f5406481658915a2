// FrameRule: how to leave a frame, in eight bytes, when rsp and rbp suffice.
//
// Most rows of CFI say: the CFA is rsp or rbp plus a constant, the return address
// is at CFA - 8, rbp is unchanged or saved at a constant distance from the CFA.
// Those, and a few common others, fit here and are kept per pc (rule_table.h).
// Every other row becomes kGeneric: cfi_unwinder.h evaluates it.
//
// ResolveRule() is the one place that decides what a pc means: a row of CFI,
// code known by its bytes, an end of the stack, or nothing.
//
// Threads: any, in any state. No lock, no allocation.

#ifndef MEMTRACE_PRELOAD_UNWIND_FRAME_RULE_H_
#define MEMTRACE_PRELOAD_UNWIND_FRAME_RULE_H_

#include <cstdint>

#include "preload/unwind/cfi_reader.h"

namespace memtrace::unwind {

enum RuleFlags : uint16_t {
  kValid = 1 << 0,        // set in every rule: no rule is all zero
  kCfaFromRbp = 1 << 1,   // base is rbp, otherwise rsp
  kRbpSaved = 1 << 2,     // at CFA + 8 * rbp_words; otherwise unchanged
  kRbpFromRbp = 1 << 3,   // with kRbpSaved: at rbp + 8 * rbp_words instead
  kCfaLoaded = 1 << 4,    // the CFA is the word at base + offset ...
  kCfaPlus8 = 1 << 5,     // ... plus 8
  kSignal = 1 << 6,       // a signal trampoline: the registers are in the ucontext
  kEnd = 1 << 7,          // the first frame of a thread or of the process
  kContextEnd = 1 << 8,   // the first frame of a context: makecontext()'s, or another library's
  kProcessEntry = 1 << 9, // ld.so's entry code: kEnd if rsp is that of the entry
  kGeneric = 1 << 10,     // needs more than rsp and rbp
  kNoInfo = 1 << 11,      // code of a module whose CFI says nothing of it
  kAskedFor = 1 << 12,    // never kept: its module may be unloaded unseen (module_epoch.h)
  // The walk leaves its loop for these.
  kUnusual = kRbpFromRbp | kCfaLoaded | kCfaPlus8 | kSignal | kEnd | kContextEnd | kProcessEntry |
             kGeneric | kNoInfo | kAskedFor,
};

struct FrameRule {
  int32_t cfa_offset = 0;
  int16_t rbp_words = 0;
  uint16_t flags = 0;

  uint64_t Packed() const {
    return static_cast<uint32_t>(cfa_offset) |
           static_cast<uint64_t>(static_cast<uint16_t>(rbp_words)) << 32 |
           static_cast<uint64_t>(flags) << 48;
  }
  static FrameRule Unpacked(uint64_t word) {
    return {static_cast<int32_t>(word), static_cast<int16_t>(word >> 32),
            static_cast<uint16_t>(word >> 48)};
  }
};
static_assert(sizeof(FrameRule) == 8);

// The row as a rule; kGeneric when it does not fit.
FrameRule PackRow(const CfiImage& image, const CfiRow& row);

// A pc of a stack: `exact` when it is the instruction that was interrupted, or
// otherwise a return address, which belongs to the call before it.
struct CodePoint {
  uintptr_t pc = 0;
  bool exact = false;
  uintptr_t lookup() const { return exact ? pc : pc - 1; }
};

struct Resolution {
  CfiStatus status = CfiStatus::kNoFde;
  bool has_row = false;    // `image` and `row` are filled; otherwise only `rule`
  bool has_cfi = false;    // a module's CFI was looked through
  bool cacheable = false;  // the rule may be kept under `tag`
  uint16_t tag = 0;        // module instance, for the key; 0 where none is known
  FrameRule rule;
};

Resolution ResolveRule(CodePoint point, CfiImage* image, CfiRow* row);

// Finds out once what needs a library call to know: where contexts of
// makecontext() begin, and where ld.so is. Called by the first rule miss.
void LearnProcess();

// Is `sp` the stack pointer the process was entered with?
bool IsProcessEntry(uintptr_t sp);

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_FRAME_RULE_H_
