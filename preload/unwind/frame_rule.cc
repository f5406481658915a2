#include "preload/unwind/frame_rule.h"

#include <link.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include <atomic>

#include "preload/unwind/module_epoch.h"
#include "preload/unwind/stack_bounds.h"

extern "C" {
extern void* __libc_stack_end __attribute__((weak));
}

namespace memtrace::unwind {
namespace {

constinit std::atomic<bool> g_learned{false};
constinit std::atomic<uintptr_t> g_context_start{0};  // glibc's __start_context
constinit std::atomic<uintptr_t> g_loader_base{0};    // where ld.so is mapped

bool IsExpression(const CfiImage& image, int64_t expression, const uint8_t* bytes, size_t size) {
  const ByteReader reader = ExpressionBytes(image, expression);
  return reader.ok() && reader.left() == size && memcmp(reader.at(), bytes, size) == 0;
}

template <size_t kSize>
bool IsExpression(const CfiImage& image, const CfiRule& rule, const uint8_t (&bytes)[kSize]) {
  return rule.kind == RuleKind::kExpression && IsExpression(image, rule.value, bytes, kSize);
}

// The signal frame that the kernel builds, told by expressions.
bool IsKernelSignalFrame(const CfiImage& image, const CfiRow& row) {
  return row.signal_frame && row.cfa.is_expression &&
         IsExpression(image, row.cfa.value, kTrampolineCfa, sizeof(kTrampolineCfa)) &&
         IsExpression(image, row.registers[kRbp], kTrampolineRbp) &&
         IsExpression(image, row.registers[kRip], kTrampolineRip);
}

// `breg offset` at the begin of an expression, for rsp and rbp.
bool TakeBase(ByteReader* reader, FrameRule* rule) {
  const uint8_t op = reader->Byte();
  if (op != 0x70 + kRsp && op != 0x70 + kRbp) return false;
  if (op == 0x70 + kRbp) rule->flags |= kCfaFromRbp;
  const int64_t offset = reader->Sleb();
  rule->cfa_offset = static_cast<int32_t>(offset);
  return reader->ok() && rule->cfa_offset == offset;
}

// *(reg + offset), as in frames gcc realigns, and that plus 8, as in OpenSSL.
bool PackCfaExpression(ByteReader reader, FrameRule* rule) {
  if (!TakeBase(&reader, rule) || reader.Byte() != 0x06) return false;
  rule->flags |= kCfaLoaded;
  if (reader.at_end()) return true;
  rule->flags |= kCfaPlus8;
  return reader.Byte() == 0x23 && reader.Byte() == 8 && reader.ok() && reader.at_end();
}

bool PackCfa(const CfiImage& image, const CfaRule& cfa, FrameRule* rule) {
  if (cfa.is_expression) return PackCfaExpression(ExpressionBytes(image, cfa.value), rule);
  if (cfa.reg != kRsp && cfa.reg != kRbp) return false;
  if (cfa.reg == kRbp) rule->flags |= kCfaFromRbp;
  rule->cfa_offset = static_cast<int32_t>(cfa.value);
  return rule->cfa_offset == cfa.value;
}

bool PackRbp(const CfiImage& image, const CfiRule& rbp, FrameRule* rule) {
  int64_t offset;
  switch (rbp.kind) {
    case RuleKind::kUnspecified:
    case RuleKind::kSame: return true;
    case RuleKind::kOffset: offset = rbp.value; break;
    case RuleKind::kExpression: {
      ByteReader reader = ExpressionBytes(image, rbp.value);
      if (reader.Byte() != 0x70 + kRbp) return false;
      offset = reader.Sleb();
      if (!reader.ok() || !reader.at_end()) return false;
      rule->flags |= kRbpFromRbp;
      break;
    }
    default: return false;
  }
  rule->flags |= kRbpSaved;
  rule->rbp_words = static_cast<int16_t>(offset / 8);
  return rule->rbp_words * int64_t{8} == offset;
}

// gcc's code that runs an object's destructors. Its bytes before and behind `pc` are of the object.
bool RunsDestructors(uintptr_t pc, const dl_find_object& object) {
  const uintptr_t begin = pc - kBeforeFinalizedBytes, end = pc + kBehindFinalizedBytes;
  return begin >= reinterpret_cast<uintptr_t>(object.dlfo_map_start) &&
         end <= reinterpret_cast<uintptr_t>(object.dlfo_map_end) && ProbeWord(begin) &&
         ProbeWord(end - 8) && IsFinalized(reinterpret_cast<const uint8_t*>(pc));
}

// Code without CFI that is known all the same.
bool KnownCode(CodePoint point, const dl_find_object* object, FrameRule* rule) {
  if (object != nullptr && !point.exact &&
      object->dlfo_link_map->l_addr == g_loader_base.load(std::memory_order_relaxed)) {
    rule->flags = kValid | kProcessEntry;
    return true;
  }
  // The code is about to be executed, but it may be gone when the stack is damaged.
  if (!ProbeWord(point.pc) || !ProbeWord(point.pc + 8)) return false;
  uint8_t code[16];
  static_assert(sizeof(code) >= kTrampolineBytes && sizeof(code) >= kPltBytes &&
                sizeof(code) >= kFiberEndBytes);
  memcpy(code, reinterpret_cast<const void*>(point.pc), sizeof(code));
  if (IsSignalTrampoline(code)) {
    rule->flags = kValid | kSignal;
    return true;
  }
  if (!point.exact) {
    if (object != nullptr && code[0] == kCall && RunsDestructors(point.pc, *object)) {
      *rule = {16, -2, kValid | kCfaFromRbp | kRbpSaved};
      return true;
    }
    rule->flags = kValid | kContextEnd;
    return IsFiberEnd(code);
  }
  rule->cfa_offset = PltCfaOffset(code);
  rule->flags = kValid;
  return rule->cfa_offset != 0;
}

// gcc's CFI of a realigned frame is wrong at the end of its epilogue, where only a signal
// can interrupt: takes back what it says of the registers that are restored by then.
void MendRealignedEpilogue(CodePoint point, const CfiImage& image, CfiRow* row) {
  static constexpr uint8_t kAtRbp[] = {0x70 + kRbp, 0};
  if (!IsExpression(image, row->registers[kRbp], kAtRbp)) return;
  const auto* code = reinterpret_cast<const uint8_t*>(point.pc);
  if (*code == kReturn) {
    if (point.pc - row->fde_start < kLeaveRealignedBytes) return;
    code -= kLeaveRealignedBytes;
  } else if (row->fde_end - point.pc < kLeaveRealignedBytes) {
    return;
  }
  if (!IsLeaveRealigned(code)) return;
  for (CfiRule& rule : row->registers) {
    if (rule.kind == RuleKind::kExpression) rule.kind = RuleKind::kSame;
  }
}

}  // namespace

FrameRule PackRow(const CfiImage& image, const CfiRow& row) {
  FrameRule rule;
  rule.flags = kValid;
  const CfiRule& ra = row.registers[row.ra_register];
  if (ra.kind == RuleKind::kUndefined) {
    rule.flags |= kEnd;
    return rule;
  }
  if (IsKernelSignalFrame(image, row)) {
    rule.flags |= kSignal;
    return rule;
  }
  const bool plain = !row.signal_frame && row.ra_register == kRip &&
                     ra.kind == RuleKind::kOffset && ra.value == -8 &&
                     row.registers[kRsp].kind == RuleKind::kUnspecified;
  if (plain && PackCfa(image, row.cfa, &rule) && PackRbp(image, row.registers[kRbp], &rule)) {
    return rule;
  }
  rule = FrameRule{};
  rule.flags = kValid | kGeneric;
  return rule;
}

Resolution ResolveRule(CodePoint point, CfiImage* image, CfiRow* row) {
  if (!g_learned.load(std::memory_order_acquire)) LearnProcess();
  Resolution result;
  dl_find_object found;
  const dl_find_object* object = nullptr;
  if (_dl_find_object(reinterpret_cast<void*>(point.lookup()), &found) == 0) {
    object = &found;
    const EpochWord before = CurrentEpoch();
    result.tag = InstanceOfModule(object, point.lookup(), &result.cacheable);
    if (result.tag == kNoTag) {
      result.tag = kPermanentTag;
      result.cacheable = false;
    }
    if (result.tag != kPermanentTag && before.closing()) result.cacheable = false;
    // Before any CFI: what lies before __start_context is not its caller.
    if (!point.exact && point.pc == g_context_start.load(std::memory_order_relaxed)) {
      result.status = CfiStatus::kOk;
      result.rule.flags = kValid | kContextEnd;
      return result;
    }
    result.has_cfi = LiveImage(found, image);
    if (result.has_cfi) result.status = FindRow(*image, point.lookup(), row);
  }
  if (result.status == CfiStatus::kOk) {
    result.has_row = true;
    if (point.exact) MendRealignedEpilogue(point, *image, row);
    result.rule = PackRow(*image, *row);
  } else if (result.status == CfiStatus::kNoFde && KnownCode(point, object, &result.rule)) {
    result.status = CfiStatus::kOk;
  }
  return result;
}

void LearnProcess() {
  g_loader_base.store(getauxval(AT_BASE), std::memory_order_relaxed);
  // makecontext() puts the address of __start_context at the top of the stack it
  // is given, for the function of the context to return to.
  ucontext_t context;
  uint64_t stack[32] = {};
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = sizeof(stack);
  context.uc_link = nullptr;
  makecontext(&context, [] {}, 0);
  uint64_t start = 0;
  const uintptr_t sp = static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
  const auto base = reinterpret_cast<uintptr_t>(stack);
  if (sp - base <= sizeof(stack) - sizeof(start)) {
    memcpy(&start, reinterpret_cast<const void*>(sp), sizeof(start));
  }
  g_context_start.store(start, std::memory_order_relaxed);
  g_learned.store(true, std::memory_order_release);
}

bool IsProcessEntry(uintptr_t sp) {
  if (&__libc_stack_end == nullptr) return false;
  const auto entry = reinterpret_cast<uintptr_t>(__libc_stack_end);
  return sp == entry || sp == (entry & ~uintptr_t{15});
}

}  // namespace memtrace::unwind
