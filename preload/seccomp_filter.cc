#include "preload/seccomp_filter.h"

#include <cerrno>
#include <cstring>

#include "preload/arch/arch.h"
#include "preload/own_memory.h"
#include "preload/sys.h"
#include "preload/unwind/stack_bounds.h"

namespace memtrace {
namespace {

constexpr size_t kMostBytes = BPF_MAXINSNS * sizeof(sock_filter);

bool Copy(void* to, const void* from, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(from);
  for (uintptr_t at = begin; at < begin + bytes;) {
    if (!unwind::ProbePage(at)) return false;
    at = (at / arch::kPageBytes + 1) * arch::kPageBytes;
  }
  memcpy(to, from, bytes);
  return true;
}

uint32_t Compute(uint16_t operation, uint32_t a, uint32_t b) {
  switch (operation) {
    case BPF_ADD: return a + b;
    case BPF_SUB: return a - b;
    case BPF_MUL: return a * b;
    case BPF_DIV: return b == 0 ? 0 : a / b;
    case BPF_OR: return a | b;
    case BPF_AND: return a & b;
    case BPF_XOR: return a ^ b;
    case BPF_LSH: return b > 31 ? 0 : a << b;
    case BPF_RSH: return b > 31 ? 0 : a >> b;
    case BPF_NEG: return -a;
    default: return a;
  }
}

bool Holds(uint16_t comparison, uint32_t a, uint32_t b) {
  switch (comparison) {
    case BPF_JEQ: return a == b;
    case BPF_JGT: return a > b;
    case BPF_JGE: return a >= b;
    default: return (a & b) != 0;  // BPF_JSET
  }
}

}  // namespace

// Whether it may is asked before what it is: one that is none tells the two apart.
bool MayInstallFilters() {
  sock_filter no_instruction = {0xffff, 0, 0, 0};
  const sock_fprog program = {1, &no_instruction};
  return sys::Call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
                   reinterpret_cast<long>(&program)) != -EACCES;
}

SeccompFilter::SeccompFilter(const void* program) {
  sock_fprog head;
  if (!Copy(&head, program, sizeof(head)) || head.len == 0 || head.len > BPF_MAXINSNS) return;
  code_ = static_cast<sock_filter*>(OwnMap(kMostBytes, /*touch=*/false));
  if (code_ != nullptr && Copy(code_, head.filter, head.len * sizeof(sock_filter))) {
    length_ = head.len;
  }
}

SeccompFilter::~SeccompFilter() {
  if (code_ != nullptr) OwnUnmap(code_, kMostBytes);
}

uint32_t SeccompFilter::Run(const seccomp_data& call) const {
  uint32_t a = 0, x = 0, memory[BPF_MEMWORDS] = {};
  for (size_t i = 0; i < length_; ++i) {  // jumps go forward only
    const sock_filter& step = code_[i];
    const uint32_t operand = BPF_SRC(step.code) == BPF_X ? x : step.k;
    const size_t word = step.k % BPF_MEMWORDS;
    switch (BPF_CLASS(step.code)) {
      case BPF_LD:
      case BPF_LDX: {
        uint32_t value = sizeof(seccomp_data);  // BPF_LEN
        if (BPF_MODE(step.code) == BPF_IMM) value = step.k;
        if (BPF_MODE(step.code) == BPF_MEM) value = memory[word];
        if (BPF_MODE(step.code) == BPF_ABS) {
          if (step.k > sizeof(call) - sizeof(value)) return SECCOMP_RET_KILL_PROCESS;
          memcpy(&value, reinterpret_cast<const char*>(&call) + step.k, sizeof(value));
        }
        (BPF_CLASS(step.code) == BPF_LD ? a : x) = value;
        break;
      }
      case BPF_ST: memory[word] = a; break;
      case BPF_STX: memory[word] = x; break;
      case BPF_ALU: a = Compute(BPF_OP(step.code), a, operand); break;
      case BPF_JMP:
        if (BPF_OP(step.code) == BPF_JA) {
          i += step.k;
        } else {
          i += Holds(BPF_OP(step.code), a, operand) ? step.jt : step.jf;
        }
        break;
      case BPF_RET: return BPF_RVAL(step.code) == BPF_A ? a : step.k;
      case BPF_MISC:
        if (BPF_MISCOP(step.code) == BPF_TAX) {
          x = a;
        } else {
          a = x;
        }
        break;
    }
  }
  return SECCOMP_RET_KILL_PROCESS;  // the kernel takes none without a return
}

bool SeccompFilter::Allows(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                           uint64_t f) const {
  seccomp_data call = {};
  call.nr = static_cast<int>(number);
  call.arch = arch::kAuditArchitecture;
  call.instruction_pointer = reinterpret_cast<uint64_t>(&Copy);
  const uint64_t arguments[] = {a, b, c, d, e, f};
  memcpy(call.args, arguments, sizeof(arguments));
  const uint32_t action = Run(call) & SECCOMP_RET_ACTION_FULL;
  return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

}  // namespace memtrace
