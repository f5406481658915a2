// The exported syscall() and prctl(): which way a call goes, and nothing else.
//
// syscall() may be a clone that returns twice, the second time on another stack: so every way
// out is a jump, with registers and stack as the caller made them. That is not C's to give:
// preload/arch/ has the instructions.
//
// The declarations of unistd.h and sys/prctl.h are variadic; what is passed is the same.

#include <linux/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cstdint>

#include "preload/arch/arch.h"
#include "preload/exported.h"
#include "preload/interpose_syscall.h"
#include "preload/real_allocator.h"

namespace {

constexpr long kConfining[] = {
    SYS_seccomp,  SYS_prctl,     SYS_chroot,    SYS_pivot_root, SYS_landlock_restrict_self,
    SYS_unshare,  SYS_setns,     SYS_capset,    SYS_setuid,     SYS_setreuid,
    SYS_setresuid, SYS_setfsuid, SYS_setgid,    SYS_setregid,   SYS_setresgid,
    SYS_setfsgid, SYS_setrlimit, SYS_prlimit64, SYS_mount,
    SYS_move_mount, SYS_userfaultfd};
#define MOST_CONFINING 511

constexpr auto TableOf() {
  std::array<uint8_t, MOST_CONFINING + 1> table = {};
  for (const long number : kConfining) table[static_cast<size_t>(number)] = 1;
  return table;
}

}  // namespace

extern "C" {
extern const std::array<uint8_t, MOST_CONFINING + 1> memtrace_is_confining;
[[gnu::used]] constinit const std::array<uint8_t, MOST_CONFINING + 1> memtrace_is_confining =
    TableOf();

[[gnu::used]] ENTERED long memtrace_confining_syscall(long number, long a, long b, long c, long d,
                                                      long e, long f) {
  return memtrace::ConfiningSyscall(number, a, b, c, d, e, f);
}
}

#define DEFINE_SYSCALL(most) MEMTRACE_DEFINE_SYSCALL(most)
DEFINE_SYSCALL(MOST_CONFINING);

EXPORTED int prctl(int option, unsigned long a, unsigned long b, unsigned long c,
                   unsigned long d) {
  if (option == PR_SET_SECCOMP) return memtrace::ConfiningPrctl(option, a, b, c, d);
  if (option == memtrace::arch::kSetCounterFaults) memtrace::PrepareForCounter(a);
  return memtrace::g_real.prctl(option, a, b, c, d);
}
