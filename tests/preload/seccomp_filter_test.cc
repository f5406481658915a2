// Random filters, and what the kernel says to the same calls.

#include "preload/seccomp_filter.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <random>
#include <vector>

namespace memtrace {
namespace {

using Code = std::vector<sock_filter>;

sock_filter Step(int code, uint32_t k, uint8_t jt = 0, uint8_t jf = 0) {
  return {static_cast<uint16_t>(code), jt, jf, k};
}

seccomp_data CallOf(const std::vector<uint64_t>& arguments) {
  seccomp_data call = {};
  call.nr = SYS_getppid;
  call.arch = AUDIT_ARCH_X86_64;
  for (size_t i = 0; i < arguments.size(); ++i) call.args[i] = arguments[i];
  return call;
}

// An error number of 1 to 64 to getppid, computed from its arguments in `steps` ways; the rest is allowed.
Code RandomFilter(std::mt19937_64& random, int steps) {
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  Code code = {Step(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
               Step(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0),
               Step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  // The kernel wants each word of memory written before it is read.
  for (uint32_t i = 0; i < BPF_MEMWORDS; ++i) code.push_back(Step(BPF_ST, i));
  code.push_back(Step(BPF_MISC | BPF_TAX, 0));
  constexpr int kOperations[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_OR, BPF_AND, BPF_XOR};
  constexpr int kJumps[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
  for (int i = 0; i < steps; ++i) {
    const uint32_t value = below(2) ? below(300) : static_cast<uint32_t>(random());
    switch (below(12)) {
      case 0:
      case 1: {
        const uint32_t word = static_cast<uint32_t>(offsetof(seccomp_data, args)) + 4 * below(12);
        code.push_back(Step(BPF_LD | BPF_W | BPF_ABS, word));
        break;
      }
      case 2: code.push_back(Step(BPF_LD | BPF_IMM, value)); break;
      case 3: code.push_back(Step(BPF_LDX | BPF_IMM, value)); break;
      case 4: code.push_back(Step((below(2) ? BPF_LD : BPF_LDX) | BPF_MEM, below(BPF_MEMWORDS))); break;
      case 5: code.push_back(Step(below(2) ? BPF_ST : BPF_STX, below(BPF_MEMWORDS))); break;
      case 6: code.push_back(Step(BPF_MISC | (below(2) ? BPF_TAX : BPF_TXA), 0)); break;
      case 7: code.push_back(Step((below(2) ? BPF_LD | BPF_W : BPF_LDX | BPF_W) | BPF_LEN, 0)); break;
      case 8: code.push_back(Step(BPF_ALU | (below(2) ? BPF_LSH : BPF_RSH) | BPF_K, below(32))); break;
      case 9:
        code.push_back(below(2) ? Step(BPF_ALU | BPF_NEG, 0)
                                : Step(BPF_ALU | BPF_DIV | BPF_K, 1 + below(1000)));
        break;
      case 10:
        code.push_back(Step(BPF_JMP | kJumps[below(4)] | (below(2) ? BPF_X : BPF_K), value,
                            static_cast<uint8_t>(below(3)), static_cast<uint8_t>(below(3))));
        // Where it may go.
        for (int pad = 0; pad < 3; ++pad) code.push_back(Step(BPF_ALU | BPF_ADD | BPF_K, value + static_cast<uint32_t>(pad)));
        break;
      case 11:
        code.push_back(Step(BPF_ALU | kOperations[below(6)] | (below(2) ? BPF_X : BPF_K), value));
        break;
    }
  }
  code.push_back(Step(BPF_ALU | BPF_AND | BPF_K, 63));
  code.push_back(Step(BPF_ALU | BPF_ADD | BPF_K, 1));
  code.push_back(Step(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO));
  code.push_back(Step(BPF_RET | BPF_A, 0));
  return code;
}

TEST(SeccompFilterTest, SaysWhatTheKernelSays) {
  std::mt19937_64 random(20261123);
  constexpr int kFilters = 300, kCalls = 16;
  int* const said = static_cast<int*>(mmap(nullptr, kCalls * sizeof(int), PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(said, MAP_FAILED);
  int different = 0;
  for (int f = 0; f < kFilters; ++f) {
    Code code = RandomFilter(random, 1 + f % 40);
    const sock_fprog program = {static_cast<uint16_t>(code.size()), code.data()};
    std::vector<std::vector<uint64_t>> calls(kCalls);
    for (auto& call : calls) {
      for (int i = 0; i < 6; ++i) call.push_back(random() % 2 ? random() : random() % 300);
    }
    const pid_t child = fork();
    if (child == 0) {
      if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(1);
      if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(2);
      for (int i = 0; i < kCalls; ++i) {
        const auto& a = calls[static_cast<size_t>(i)];
        said[i] = syscall(SYS_getppid, a[0], a[1], a[2], a[3], a[4], a[5]) == -1 ? errno : 0;
      }
      _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "filter " << f;
    const SeccompFilter filter(&program);
    ASSERT_TRUE(filter);
    for (int i = 0; i < kCalls; ++i) {
      const uint32_t result = filter.Run(CallOf(calls[static_cast<size_t>(i)]));
      EXPECT_EQ(result & SECCOMP_RET_ACTION_FULL, static_cast<uint32_t>(SECCOMP_RET_ERRNO));
      ASSERT_EQ(static_cast<int>(result & SECCOMP_RET_DATA), said[i]) << "filter " << f << ", call " << i;
      different += said[i] != said[0];
    }
  }
  EXPECT_GT(different, kFilters) << "the filters do look at the arguments";
  munmap(said, kCalls * sizeof(int));
}

TEST(SeccompFilterTest, AllowsWhatIsLetThroughOrLogged) {
  for (const auto& [action, allowed] :
       {std::pair(SECCOMP_RET_ALLOW, true), {SECCOMP_RET_LOG, true}, {SECCOMP_RET_TRACE, false},
        {SECCOMP_RET_USER_NOTIF, false}, {SECCOMP_RET_ERRNO, false}, {SECCOMP_RET_TRAP, false},
        {SECCOMP_RET_KILL_THREAD, false}, {SECCOMP_RET_KILL_PROCESS, false}}) {
    Code code = {Step(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
                 Step(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
                 Step(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                 Step(BPF_RET | BPF_K, static_cast<uint32_t>(action))};
    const sock_fprog program = {static_cast<uint16_t>(code.size()), code.data()};
    EXPECT_EQ(SeccompFilter(&program).Allows(SYS_madvise, 0, 4096, MADV_DONTNEED), allowed)
        << std::hex << action;
  }
}

TEST(SeccompFilterTest, WhatCannotBeReadIsNotKnown) {
  EXPECT_FALSE(SeccompFilter(reinterpret_cast<const void*>(1)));
  sock_fprog program = {3, reinterpret_cast<sock_filter*>(1)};
  EXPECT_FALSE(SeccompFilter(&program));
  Code code = {Step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  program = {0, code.data()};
  EXPECT_FALSE(SeccompFilter(&program));
}

}  // namespace
}  // namespace memtrace
