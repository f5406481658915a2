// x86-64 Linux: see arch.h, the only file that includes this one.

#ifndef MEMTRACE_PRELOAD_ARCH_X86_64_H_
#define MEMTRACE_PRELOAD_ARCH_X86_64_H_

#include <linux/prctl.h>
#include <sys/syscall.h>
#include <x86intrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memtrace::arch {

// --- The processor ---------------------------------------------------------------

// The counter that is the clock of events where the kernel has it as its own clock
// source, under this name.
inline constexpr char kClockSource[] = "tsc";
// prctl() by which a thread, and what it forks, gives up reading the counter: it is a fault
// then, in the vDSO's clocks too, but for the coarse ones. What it executes is over in
// ld.so, which reads it.
inline constexpr int kSetCounterFaults = PR_SET_TSC;
inline constexpr unsigned long kCounterFaults = PR_TSC_SIGSEGV;
// The name of clock_gettime in the kernel's vDSO.
inline constexpr char kVdsoClockGettime[] = "__vdso_clock_gettime";

// The architecture as a seccomp filter is told it: AUDIT_ARCH_X86_64.
inline constexpr uint32_t kAuditArchitecture = 0xc000003e;
inline uint64_t Ticks() { return __rdtsc(); }
// Read after everything before it and before everything behind it: the processor may
// begin a plain rdtsc early.
inline uint64_t TicksInOrder() {
  _mm_lfence();
  const uint64_t now = __rdtsc();
  _mm_lfence();
  return now;
}

// Makes the processor finish all instructions before it, before any behind it begins.
inline void FinishInstructions() { _mm_lfence(); }

// until -= bytes; was it `bytes` at the most, both signed? One read-modify-write whose flags are the
// answer: compilers make five instructions of the comparison and the difference.
[[gnu::always_inline]] inline bool SubtractReaches(uint64_t& until, uint64_t bytes) {
  bool reached;
  asm("subq %2, %0" : "+m"(until), "=@ccle"(reached) : "r"(bytes));
  return reached;
}

// Whether two words in memory differ. Where they do not, neither is left in a register: what a call
// of the program's leaves there it may keep for long, and a leak scan takes it for a pointer.
template <typename A, typename B>
[[gnu::always_inline]] inline bool Differ(const A& a, const B& b) {
  static_assert(sizeof(a) == 8 && sizeof(b) == 8);
  uintptr_t difference;
  bool differ;
  asm("movq %2, %0\n\tsubq %3, %0" : "=&r"(difference), "=@ccnz"(differ) : "m"(a), "m"(b));
  return differ;
}

// --- Calls and frames --------------------------------------------------------------

// The return address lies so far below the frame's end (CFA).
inline constexpr uintptr_t kReturnSlot = 8;
// From what __builtin_frame_address(0) gives to the end of that frame. The caller's frame
// pointer is the word it points to.
inline constexpr uintptr_t kFrameAddressToCfa = 16;

// DWARF numbers.
enum Register : uint8_t {
  kRax = 0, kRdx = 1, kRcx = 2, kRbx = 3, kRsi = 4, kRdi = 5, kRbp = 6, kRsp = 7,
  kR8 = 8, kR9 = 9, kR10 = 10, kR11 = 11, kR12 = 12, kR13 = 13, kR14 = 14, kR15 = 15,
  kRip = 16,
};
inline constexpr int kRegisterCount = 17;

// Addresses of user space have at most this many bits.
inline constexpr int kAddressBits = 47;

inline constexpr uintptr_t kPageBytes = 4096;

// The registers a function must keep, as they are where this is expanded.
struct KeptRegisters {
  uintptr_t rip, rsp, rbp, rbx, r12, r13, r14, r15;
};
[[gnu::always_inline]] inline KeptRegisters CurrentRegisters() {
  KeptRegisters r;
  asm volatile(
      "leaq 0f(%%rip), %%rax\n\t"
      "movq %%rax, 0(%0)\n\t"
      "movq %%rsp, 8(%0)\n\t"
      "movq %%rbp, 16(%0)\n\t"
      "movq %%rbx, 24(%0)\n\t"
      "movq %%r12, 32(%0)\n\t"
      "movq %%r13, 40(%0)\n\t"
      "movq %%r14, 48(%0)\n\t"
      "movq %%r15, 56(%0)\n"
      "0:"
      :
      : "r"(&r)
      : "rax", "memory");
  return r;
}

// The register with this DWARF number, if a KeptRegisters has it.
inline bool KeptRegister(const KeptRegisters& kept, int reg, uint64_t* value) {
  switch (reg) {
    case kRip: *value = kept.rip; return true;
    case kRsp: *value = kept.rsp; return true;
    case kRbp: *value = kept.rbp; return true;
    case kRbx: *value = kept.rbx; return true;
    case kR12: *value = kept.r12; return true;
    case kR13: *value = kept.r13; return true;
    case kR14: *value = kept.r14; return true;
    case kR15: *value = kept.r15; return true;
    default: return false;
  }
}

// For a function that may be called with any stack pointer: it aligns the stack itself.
#define MEMTRACE_ALIGNS_STACK __attribute__((force_align_arg_pointer))

// Calls `function` on the stack that ends at `top`, a multiple of 16. The caller has
// a frame pointer, by which unwinders pass over the change of stacks.
inline void CallOnStack(void* top, void (*function)(void*), void* argument) {
  asm volatile(
      "movq %%rsp, %%rbx\n\t"
      "movq %0, %%rsp\n\t"
      "call *%1\n\t"
      "movq %%rbx, %%rsp"
      : "+r"(top), "+r"(function), "+D"(argument)
      :
      : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15", "memory", "cc");
}

// Defines the exported function `name` of up to three arguments: it calls `before` with them,
// then jumps to what the pointer `next` holds, with registers, stack and return address as
// its caller left them.
#define MEMTRACE_OBSERVED_JUMP(name, before, next)   \
  asm(".pushsection .text\n"                         \
      ".balign 16\n"                                 \
      ".globl " name "\n"                            \
      ".type " name ", @function\n" name             \
      ":\n\t"                                        \
      ".cfi_startproc\n\t"                           \
      "endbr64\n\t"                                  \
      "pushq %rdi\n\t"                               \
      ".cfi_adjust_cfa_offset 8\n\t"                 \
      "pushq %rsi\n\t"                               \
      ".cfi_adjust_cfa_offset 8\n\t"                 \
      "pushq %rdx\n\t"                               \
      ".cfi_adjust_cfa_offset 8\n\t"                 \
      "call " before "\n\t"                          \
      "popq %rdx\n\t"                                \
      ".cfi_adjust_cfa_offset -8\n\t"                \
      "popq %rsi\n\t"                                \
      ".cfi_adjust_cfa_offset -8\n\t"                \
      "popq %rdi\n\t"                                \
      ".cfi_adjust_cfa_offset -8\n\t"                \
      "jmp *" next "(%rip)\n\t"                      \
      ".cfi_endproc\n"                               \
      ".size " name ", . - " name "\n"               \
      ".popsection")

// From what __builtin_frame_address(0) gives in `before` to the stack pointer that the function
// above was called with.
inline constexpr uintptr_t kObservedCallerOffset = kFrameAddressToCfa + 3 * 8 + 8;

// Where the registers that a function must keep begin, in the frame of the function that this is
// expanded in, which saves all of them for that. What its callers have lies there or above.
#define MEMTRACE_KEPT_REGISTERS_ON_STACK() \
  (__builtin_unwind_init(), reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - 5 * 8)

// Defines the exported function `name`, whose first of seven arguments is a function: `before`
// gives another in its place. Then it jumps to what the pointer `next` holds.
#define MEMTRACE_SUBSTITUTING_JUMP(name, before, next) \
  asm(".pushsection .text\n"                           \
      ".balign 16\n"                                   \
      ".globl " name "\n"                              \
      ".type " name ", @function\n" name               \
      ":\n\t"                                          \
      ".cfi_startproc\n\t"                             \
      "endbr64\n\t"                                    \
      "pushq %rsi\n\t"                                 \
      ".cfi_adjust_cfa_offset 8\n\t"                   \
      "pushq %rdx\n\t"                                 \
      ".cfi_adjust_cfa_offset 8\n\t"                   \
      "pushq %rcx\n\t"                                 \
      ".cfi_adjust_cfa_offset 8\n\t"                   \
      "pushq %r8\n\t"                                  \
      ".cfi_adjust_cfa_offset 8\n\t"                   \
      "pushq %r9\n\t"                                  \
      ".cfi_adjust_cfa_offset 8\n\t"                   \
      "call " before "\n\t"                            \
      "movq %rax, %rdi\n\t"                            \
      "popq %r9\n\t"                                   \
      ".cfi_adjust_cfa_offset -8\n\t"                  \
      "popq %r8\n\t"                                   \
      ".cfi_adjust_cfa_offset -8\n\t"                  \
      "popq %rcx\n\t"                                  \
      ".cfi_adjust_cfa_offset -8\n\t"                  \
      "popq %rdx\n\t"                                  \
      ".cfi_adjust_cfa_offset -8\n\t"                  \
      "popq %rsi\n\t"                                  \
      ".cfi_adjust_cfa_offset -8\n\t"                  \
      "jmp *" next "(%rip)\n\t"                        \
      ".cfi_endproc\n"                                 \
      ".size " name ", . - " name "\n"                 \
      ".popsection")

// libunwind for this machine, and how it begins the names of its functions. Its
// numbers of registers are DWARF's.
inline constexpr char kLibunwindFile[] = "libunwind-x86_64.so.8";
#define MEMTRACE_LIBUNWIND_NAME(name) "_Ux86_64_" name

// The thread control block: glibc puts it at the top of a thread's stack.
inline uintptr_t ThreadPointer() {
  uintptr_t value;
  asm("movq %%fs:0x10, %0" : "=r"(value));
  return value;
}

// Returns the kernel's answer, a negative errno included; errno is untouched.
inline long RawSystemCall(long number, long a = 0, long b = 0, long c = 0, long d = 0,
                          long e = 0, long f = 0) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

// Makes a process with these flags of clone(), which calls `function` on the stack that
// ends at `top`, a multiple of 16, and ends. Its number, or -errno. With CLONE_VFORK that
// is when it has ended.
inline long CloneAndCall(long flags, void* top, void (*function)(void*), void* argument) {
  long result = SYS_clone;
  register long r10 asm("r10") = 0;
  register long r8 asm("r8") = 0;
  asm volatile(
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jnz 0f\n\t"
      "movq %[argument], %%rdi\n\t"
      "call *%[function]\n\t"
      "xorl %%edi, %%edi\n\t"
      "movl %[exit], %%eax\n\t"
      "syscall\n\t"
      "hlt\n"
      "0:"
      : "+a"(result)
      : "D"(flags), "S"(top), "d"(0L), "r"(r10), "r"(r8), [function] "r"(function),
        [argument] "r"(argument), [exit] "i"(SYS_exit_group)
      : "rcx", "r11", "memory", "cc");
  return result;
}

// Defines the exported function syscall(): a jump to the function at *memtrace_real_syscall, or
// to memtrace_confining_syscall where memtrace_is_confining, a table of bytes, has one for the
// number. It touches nothing but rax, which has no argument: not the stack either, where a
// compiler's jump with a seventh argument would store what it had loaded there, over what
// another thread or a vfork child may have written meanwhile. The three names are C's.
#define MEMTRACE_DEFINE_SYSCALL(most)                    \
  asm(".pushsection .text\n"                             \
      ".p2align 4\n"                                     \
      ".globl syscall\n"                                 \
      ".type syscall, @function\n"                       \
      "syscall:\n"                                       \
      "  .cfi_startproc\n"                               \
      "  endbr64\n"                                      \
      "  cmpq $" #most ", %rdi\n"                        \
      "  ja 1f\n"                                        \
      "  leaq memtrace_is_confining(%rip), %rax\n"       \
      "  cmpb $0, (%rax,%rdi)\n"                         \
      "  jne memtrace_confining_syscall\n"               \
      "1:\n"                                             \
      "  jmp *memtrace_real_syscall(%rip)\n"             \
      "  .cfi_endproc\n"                                 \
      ".size syscall, . - syscall\n"                     \
      ".popsection\n")

// In the code of a signal trampoline rsp points to the ucontext; this is where
// the kernel put the registers in it (struct sigcontext), by DWARF number.
inline constexpr int16_t kUcontextOffset[kRegisterCount] = {
    144, 136, 152, 128, 112, 104, 120, 160, 40, 48, 56, 64, 72, 80, 88, 96, 168};

inline uint64_t UcontextRegister(const void* ucontext, int dwarf) {
  uint64_t value;
  memcpy(&value, static_cast<const char*>(ucontext) + kUcontextOffset[dwarf], sizeof(value));
  return value;
}
inline void SetUcontextRegister(void* ucontext, int dwarf, uint64_t value) {
  memcpy(static_cast<char*>(ucontext) + kUcontextOffset[dwarf], &value, sizeof(value));
}

inline uintptr_t UcontextPc(const void* ucontext) { return UcontextRegister(ucontext, 16); }
// The result that the interrupted system call will return when the handler returns, if the
// signal interrupted one.
inline int64_t CallResult(const void* ucontext) { return static_cast<int64_t>(UcontextRegister(ucontext, 0)); }
// The address behind that call; 0: there was none, or one that the kernel makes again by itself.
// `readable(address)` says whether the word around an address is: code may begin at that of another
// page, or be for execution alone.
template <typename Readable>
uintptr_t InterruptedCall(const void* ucontext, Readable readable) {
  const uintptr_t pc = UcontextPc(ucontext);
  if (!readable(pc - 2) || !readable(pc - 1)) return 0;
  const auto* const code = reinterpret_cast<const uint8_t*>(pc);
  return code[-2] == 0x0f && code[-1] == 0x05 ? pc : 0;
}
// The kernel leaves the address behind a call in rcx: where it is not, something else ran since.
inline bool IsJustBehindCall(const void* ucontext) { return UcontextRegister(ucontext, 2) == UcontextPc(ucontext); }
// The number of that call where the instruction before it says so, else -1.
inline long CallNumberAt(uintptr_t pc) {
  if (pc % kPageBytes < 7) return -1;
  const auto* const code = reinterpret_cast<const uint8_t*>(pc);
  if (code[-4] == 0x31 && code[-3] == 0xc0 && (code[-5] & 0xf0) != 0x40) return 0;  // xor %eax, %eax; syscall
  uint32_t number;
  memcpy(&number, code - 6, sizeof(number));
  return code[-7] == 0xb8 ? static_cast<long>(number) : -1;  // mov $number, %eax; syscall
}
// An argument of that call; the kernel kept them.
inline uint64_t CallArgument(const void* ucontext, int index) {
  constexpr int kRegisters[] = {5, 4, 1, 10, 8, 9};
  return UcontextRegister(ucontext, kRegisters[index]);
}
// Makes that call return `result` instead.
inline void EndCall(void* ucontext, int64_t result) {
  SetUcontextRegister(ucontext, 0, static_cast<uint64_t>(result));
}
// Makes that call once more when the handler returns.
inline void MakeCallAgain(void* ucontext, long number) {
  SetUcontextRegister(ucontext, 0, static_cast<uint64_t>(number));
  SetUcontextRegister(ucontext, 16, UcontextRegister(ucontext, 16) - 2);
}

// long name(void* owner, long number, const uint64_t* arguments): the call of the kernel. A handler
// that interrupts it is at `behind`, and has CallAgainOwner().
#define MEMTRACE_DEFINE_CALL_AGAIN(name, behind) \
  asm(".pushsection .text\n"                     \
      ".balign 16\n"                             \
      ".globl " name "\n"                        \
      ".hidden " name "\n"                       \
      ".type " name ", @function\n" name ":\n"  \
      "  .cfi_startproc\n"                       \
      "  endbr64\n"                              \
      "  pushq %rbx\n"                           \
      "  .cfi_adjust_cfa_offset 8\n"             \
      "  .cfi_rel_offset %rbx, 0\n"              \
      "  movq %rdi, %rbx\n"                      \
      "  movq %rsi, %rax\n"                      \
      "  movq %rdx, %r11\n"                      \
      "  movq (%r11), %rdi\n"                    \
      "  movq 8(%r11), %rsi\n"                   \
      "  movq 16(%r11), %rdx\n"                  \
      "  movq 24(%r11), %r10\n"                  \
      "  movq 32(%r11), %r8\n"                   \
      "  movq 40(%r11), %r9\n"                   \
      "  syscall\n"                              \
      ".globl " behind "\n"                      \
      ".hidden " behind "\n" behind ":\n"       \
      "  popq %rbx\n"                            \
      "  .cfi_adjust_cfa_offset -8\n"            \
      "  .cfi_restore %rbx\n"                    \
      "  ret\n"                                  \
      "  .cfi_endproc\n"                         \
      ".size " name ", . - " name "\n"           \
      ".popsection\n")
inline void* CallAgainOwner(const void* ucontext) { return reinterpret_cast<void*>(UcontextRegister(ucontext, 3)); }

// Below the stack pointer, these bytes are the function's own that runs there.
inline constexpr uintptr_t kRedZoneBytes = 128;

// The struct by which the kernel takes a signal's action. A handler returns by `restorer`, which
// MEMTRACE_DEFINE_RESTORER defines as a function of C.
struct KernelAction {
  void* handler;
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};
inline constexpr unsigned long kHasRestorer = 0x04000000;
#define MEMTRACE_DEFINE_RESTORER(name)     \
  asm(".pushsection .text\n"               \
      ".balign 16\n"                       \
      "nop\n"                              \
      ".globl " name "\n"                  \
      ".hidden " name "\n"                 \
      ".type " name ", @function\n" name   \
      ":\n"                                \
      "  movq $15, %rax\n"                 \
      "  syscall\n"                        \
      ".size " name ", . - " name "\n"     \
      ".popsection\n")

// The CFI of glibc's __restore_rt says the same by expressions. These are the
// three that matter, in the form `breg7 offset [deref]`.
inline constexpr uint8_t kTrampolineCfa[] = {0x77, 0xa0, 0x01, 0x06};
inline constexpr uint8_t kTrampolineRbp[] = {0x77, 0xf8, 0x00};
inline constexpr uint8_t kTrampolineRip[] = {0x77, 0xa8, 0x01};

// While it lives, this thread may read and write memory of every protection key, as the kernel may.
// Whether there are keys is asked of the kernel: a program may have CPUID fault (arch_prctl).
class EveryProtectionKey {
 public:
  EveryProtectionKey() {
    const long key = RawSystemCall(SYS_pkey_alloc, 0, 0, 0, 0, 0, 0);
    if (key < 0) return;
    RawSystemCall(SYS_pkey_free, key, 0, 0, 0, 0, 0);
    has_ = true;
    uint32_t edx;
    asm volatile("rdpkru" : "=a"(before_), "=d"(edx) : "c"(0));
    before_ |= uint32_t{1} << (2 * key);  // no access, as it was before that key was given out
    Set(0);
  }
  ~EveryProtectionKey() {
    if (has_) Set(before_);
  }
  EveryProtectionKey(const EveryProtectionKey&) = delete;
  EveryProtectionKey& operator=(const EveryProtectionKey&) = delete;

 private:
  static void Set(uint32_t rights) { asm volatile("wrpkru" : : "a"(rights), "c"(0), "d"(0) : "memory"); }

  bool has_ = false;
  uint32_t before_ = 0;
};

// Is this the code of a signal trampoline? It is what other libraries than glibc
// use, without CFI: mov $15, %rax (or %eax); syscall.
inline constexpr size_t kTrampolineBytes = 9;
inline bool IsSignalTrampoline(const uint8_t* code) {
  static constexpr uint8_t kLong[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  static constexpr uint8_t kShort[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
  return memcmp(code, kLong, sizeof(kLong)) == 0 || memcmp(code, kShort, sizeof(kShort)) == 0;
}

// Where a fiber's function would return to, in make_fcontext() of Boost.Context, which PHP and many
// others have in them: xor %rdi, %rdi; call _exit, through the PLT or not; hlt. It has no CFI.
inline constexpr size_t kFiberEndBytes = 14;
inline bool IsFiberEnd(const uint8_t* code) {
  if (memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0) code += 4;  // endbr64
  if (memcmp(code, "\x48\x31\xff", 3) != 0) return false;
  return (code[3] == 0xe8 && code[8] == 0xf4) ||
         (code[3] == 0xff && code[4] == 0x15 && code[9] == 0xf4);
}

// `pattern`: hexadecimal digits of bytes; a dot is any digit.
inline bool IsCode(const uint8_t* code, const char* pattern) {
  for (; *pattern != '\0'; pattern += 2, ++code) {
    for (int i = 0; i < 2; ++i) {
      const char digit = "0123456789abcdef"[i == 0 ? *code >> 4 : *code & 15];
      if (pattern[i] != '.' && pattern[i] != digit) return false;
    }
  }
  return true;
}

// What the call of __cxa_finalize() returns to in __do_global_dtors_aux(), which gcc's crtbeginS.o
// puts into each shared object, without CFI. By it dlclose() destroys the object's variables. The
// frame there is that of push %rbp; mov %rsp, %rbp.
inline constexpr uint8_t kCall = 0xe8;  // is what is there first
inline constexpr size_t kBeforeFinalizedBytes = 35, kBehindFinalizedBytes = 15;
inline bool IsFinalized(const uint8_t* behind) {
  // cmpb $0, completed(%rip); jne; push %rbp; cmpq $0, slot(%rip); mov %rsp, %rbp; je;
  // mov __dso_handle(%rip), %rdi; call __cxa_finalize; call deregister_tm_clones;
  // movb $1, completed(%rip); pop %rbp; ret. Older ones push, and pop, elsewhere.
  struct Flavour {
    const char* code;
    int completed;  // where the second operand of that name is
  };
  static constexpr Flavour kFlavours[] = {
      {"803d........0075..5548833d........004889e5740c488b3d........e8........"
       "e8........c605........015dc3", 42},
      {"803d........0075..48833d........00554889e5740c488b3d........e8........"
       "e8........c605........015dc3", 42},
      {"803d........0075..48833d........00554889e5740c488b3d........e8........"
       "e8........5dc605........01f3c3", 43}};
  const uint8_t* const code = behind - kBeforeFinalizedBytes;
  for (const Flavour& flavour : kFlavours) {
    if (!IsCode(code, flavour.code)) continue;
    int32_t first, second;
    memcpy(&first, code + 2, sizeof(first));
    memcpy(&second, code + flavour.completed, sizeof(second));
    return first + int64_t{2} == second + int64_t{flavour.completed};
  }
  return false;
}

// The distance from rsp to the CFA at an instruction of a PLT stub that a signal
// interrupted, or 0 when these bytes are none. Linkers do emit CFI for the PLT,
// but not for every flavour of it.
inline constexpr size_t kPltBytes = 12;
inline int PltCfaOffset(const uint8_t* code) {
  if (memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0) code += 4;  // endbr64
  if (code[0] == 0xf2) ++code;                              // bnd
  if (code[0] == 0xff && code[1] == 0x25) return 8;         // jmp *slot(%rip)
  if (code[0] == 0x68 && code[5] == 0xe9) return 8;         // push $index; jmp plt0
  if (code[0] == 0x68 && code[5] == 0xf2 && code[6] == 0xe9) return 8;
  return 0;
}

// The last two instructions of a function whose frame gcc realigned are lea -8(%r10), %rsp
// (or r13) and ret. rbp and the other kept registers are restored by then, while gcc's CFI
// goes on saying that they are saved relative to rbp.
inline constexpr uint8_t kReturn = 0xc3;
inline constexpr size_t kLeaveRealignedBytes = 4;
inline bool IsLeaveRealigned(const uint8_t* code) {
  return code[0] == 0x49 && code[1] == 0x8d && (code[2] == 0x62 || code[2] == 0x65) &&
         code[3] == 0xf8;
}

}  // namespace memtrace::arch

#endif  // MEMTRACE_PRELOAD_ARCH_X86_64_H_
