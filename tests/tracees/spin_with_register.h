// A thread that holds an address in one register and nowhere else.

#ifndef MEMTRACE_TESTS_TRACEES_SPIN_WITH_REGISTER_H_
#define MEMTRACE_TESTS_TRACEES_SPIN_WITH_REGISTER_H_

#include <stdint.h>

__attribute__((used)) static volatile int g_spins;  // the address is where it shall be

// For ever. `hidden` is the complement of the address, which is then in r13: a register that is
// not among those of calls.
__attribute__((noinline, used)) static void SpinWithRegister(uintptr_t hidden) {
  __asm__ volatile(
      "notq %%rdi\n\t"
      "movq %%rdi, %%r13\n\t"
      "xorl %%edi, %%edi\n\t"
      "xorl %%eax, %%eax\n"
      "1:\n\t"
      "pause\n\t"
      "movl $1, g_spins(%%rip)\n\t"
      "jmp 1b"
      :
      : "D"(hidden)
      : "rax", "r13", "memory");
}

#endif  // MEMTRACE_TESTS_TRACEES_SPIN_WITH_REGISTER_H_
