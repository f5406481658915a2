// Functions that are called on a stack of their own, which lies above the caller's: where the caller is, the code between
// keeps in a register or on the new stack, and its CFI says so.

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include "tests/unwind/every_way.h"

// void call_by_X(void (*function)(), void* end_of_stack)
__asm__(R"(
  .text
  .type call_by_memory, @function
call_by_memory:
  .cfi_startproc
  leaq -16(%rsi), %rsi
  movq %rsp, (%rsi)
  movq %rsi, %rsp
  # DW_CFA_def_cfa_expression: DW_OP_breg7 0, DW_OP_deref, DW_OP_plus_uconst 8
  .cfi_escape 0x0f, 5, 0x77, 0, 0x06, 0x23, 8
  call *%rdi
  movq (%rsp), %rsp
  .cfi_def_cfa rsp, 8
  ret
  .cfi_endproc
  .size call_by_memory, . - call_by_memory

  .type call_by_rbp, @function
call_by_rbp:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register rbp
  movq %rsi, %rsp
  call *%rdi
  movq %rbp, %rsp
  popq %rbp
  .cfi_def_cfa rsp, 8
  ret
  .cfi_endproc
  .size call_by_rbp, . - call_by_rbp

  .type call_by_r12, @function
call_by_r12:
  .cfi_startproc
  pushq %r12
  .cfi_def_cfa_offset 16
  .cfi_offset r12, -16
  movq %rsp, %r12
  .cfi_def_cfa_register r12
  movq %rsi, %rsp
  call *%rdi
  movq %r12, %rsp
  popq %r12
  .cfi_def_cfa rsp, 8
  .cfi_restore r12
  ret
  .cfi_endproc
  .size call_by_r12, . - call_by_r12
)");
extern "C" void call_by_memory(void (*function)(), void* end_of_stack);
extern "C" void call_by_rbp(void (*function)(), void* end_of_stack);
extern "C" void call_by_r12(void (*function)(), void* end_of_stack);

namespace memtrace::unwind {
namespace {

thread_local EveryWay* t_ways;
thread_local CapturedStack t_seen;
volatile int g_sink;

[[gnu::noinline]] void Leaf() {
  t_seen = t_ways->Capture(MEMTRACE_CALLER_SITE());
  g_sink = g_sink + 1;
}

[[gnu::noinline]] CapturedStack CaptureCaller() { return t_ways->Capture(MEMTRACE_CALLER_SITE()); }

[[gnu::noinline]] void CallOn(char* end_of_stack) {
  const CapturedStack here = CaptureCaller();
  ASSERT_EQ(here.marker, format::StackMarker::kNone);
  for (const auto call : {call_by_memory, call_by_rbp, call_by_r12}) {
    for (int i = 0; i < 3; ++i) {
      call(Leaf, end_of_stack);
      EXPECT_EQ(t_seen.marker, format::StackMarker::kNone);
      // The one that calls Leaf, and then what is here but for the line.
      ASSERT_EQ(t_seen.keys.size(), here.keys.size() + 1);
      for (size_t frame = 1; frame < here.keys.size(); ++frame) EXPECT_EQ(t_seen.keys[frame + 1], here.keys[frame]);
    }
  }
}

TEST(CalledOnAnotherStackTest, TheCallersStackLiesBelow) {
  constexpr size_t kBytes = 256 << 10, kGap = 64 << 10;
  auto* const memory = static_cast<char*>(
      mmap(nullptr, 2 * kBytes + kGap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  munmap(memory + kBytes, kGap);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, memory, kBytes), 0);
  const auto body = [](void* end_of_stack) -> void* {
    EveryWay ways;
    t_ways = &ways;
    CallOn(static_cast<char*>(end_of_stack));
    t_seen = {};
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, body, memory + 2 * kBytes + kGap), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  munmap(memory, kBytes);
  munmap(memory + kBytes + kGap, kBytes);
}

}  // namespace
}  // namespace memtrace::unwind
