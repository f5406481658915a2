#include "preload/sys.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <new>
#include <thread>

namespace memtrace {
namespace {

volatile int g_prctl_calls = 0;

// The kernel without CONFIG_ANON_VMA_NAME, whatever this one has.
void AnswerEinval(int, siginfo_t*, void* context) {
  g_prctl_calls = g_prctl_calls + 1;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RAX] = -EINVAL;
}

bool TrapPrctl() {
  struct sigaction action = {};
  action.sa_sigaction = AnswerEinval;
  action.sa_flags = SA_SIGINFO;
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
  return sigaction(SIGSYS, &action, nullptr) == 0 &&
         prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// A handler that jumps out of a call leaves the count; where that is proven, the thread takes its own back.
TEST(OtherCallsTest, WhatAJumpLeftIsTakenBackOnce) {
  const uint32_t before = g_other_calls.load();
  alignas(OtherCalls) char left[2][sizeof(OtherCalls)];
  {
    auto* const first = new (left[0]) OtherCalls;
    new (left[1]) OtherCalls;
    const OtherCalls outer;
    EXPECT_EQ(g_other_calls.load(), before + 3);
    OtherCalls::TakeBack();
    EXPECT_EQ(g_other_calls.load(), before);
    { const OtherCalls later; }
    first->~OtherCalls();  // not gone after all
  }
  EXPECT_EQ(g_other_calls.load(), before);
}

TEST(OtherCallsTest, ThoseOfOtherThreadsStay) {
  const OtherCalls here;
  const uint32_t before = g_other_calls.load();
  std::thread([] { OtherCalls::TakeBack(); }).join();
  EXPECT_EQ(g_other_calls.load(), before);
}

// It is no empty file: the settings of a process, for one, are then not known to be the defaults.
TEST(SysTest, AFileThatCanBeOpenedAndNotReadIsAnError) {
  char text[64];
  EXPECT_EQ(sys::ReadFile("/", text, sizeof(text)), -EISDIR);
  EXPECT_EQ(sys::ReadFile("/dev/null", text, sizeof(text)), 0);
}

TEST(SysTest, AKernelThatCannotNameMappingsIsAskedOnce) {
  void* const page = sys::Mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
  ASSERT_FALSE(sys::MmapFailed(page));
  constexpr int kNoFilter = 100;
  const pid_t child = fork();
  if (child == 0) {
    if (!TrapPrctl()) _exit(kNoFilter);
    sys::g_kernel_names_mappings.store(true);
    for (int i = 0; i < 3; ++i) sys::NameMapping(page, 4096, "memtrace");
    _exit(g_prctl_calls);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "this kernel has no seccomp filters";
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace memtrace
